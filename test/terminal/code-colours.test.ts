import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keys, openConversation } from "./pty-stage.ts";

const answer = "Look:\n\n```ts\nconst limit = 10;\n```\n";
const edit = {
  calls: [
    {
      name: "Edit",
      input: { file_path: "src/a.ts", old_string: "const limit = 10;", new_string: "const limit = 20;" },
    },
  ],
};
const files = { "src/a.ts": "const limit = 10;\n" };
const read = { calls: [{ name: "Read", input: { file_path: "src/a.ts" } }] };

test("code of the first answer and the words that an edit changes have colours, as many as the terminal has; after --continue too [CLI-4]", async () => {
  const { pty, place, again } = await openConversation([answer, read, edit, "Changed."], {
    words: ["--permission-mode", "acceptEdits", "show me"],
    files,
    environment: { COLORTERM: "truecolor" },
  });
  await pty.shows("const limit = 10;");
  await pty.isMissing("esc to interrupt");
  expect(pty.bytes()).toMatch(/\u001b\[38;2;[\d;]+mconst\u001b\[0m/);
  pty.type(`edit it${keys.enter}`);
  await pty.shows("Changed.", "Edit src/a.ts  +1 −1");
  expect(readFileSync(join(place.cwd, "src/a.ts"), "utf8")).toBe("const limit = 20;\n");
  expect(pty.bytes()).toMatch(/\u001b\[38;2;[\d;]+;48;2;[\d;]+m20\u001b\[0m/);
  await pty.isMissing("esc to interrupt");
  pty.type(keys.ctrlD);
  await pty.exited;
  const next = again(["--continue"], { environment: { COLORTERM: "", TERM: "xterm-256color" } });
  await next.shows("const limit = 10;");
  expect(next.bytes()).toMatch(/\u001b\[38;5;\d+mconst\u001b\[0m/);
});

test("NO_COLOR leaves no colour in code and diffs; the words that changed are underlined [CLI-4]", async () => {
  const { pty } = await openConversation([answer, read, edit, "Changed."], {
    words: ["--permission-mode", "acceptEdits", "show me"],
    files,
    environment: { NO_COLOR: "1", COLORTERM: "truecolor" },
  });
  await pty.shows("const limit = 10;");
  await pty.isMissing("esc to interrupt");
  pty.type(`edit it${keys.enter}`);
  await pty.shows("Changed.", "+ const limit = 20;");
  expect(pty.bytes()).not.toMatch(/\u001b\[[\d;]*(?:3[0-8]|4[0-8]|9\d)(?:;[\d;]*)?m/);
  expect(pty.bytes()).toContain("\u001b[1;4m20\u001b[0m");
});
