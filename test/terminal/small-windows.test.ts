import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { afterGuard, keys, openConversation } from "./pty-stage.ts";

test("in a window of 20 by 5 a question shows what would run, and all of it on a page [CLI-4]", async () => {
  const command = ["touch made", ...Array.from({ length: 30 }, (_, at) => `# line ${at}`)].join("\n");
  const { pty, place } = await openConversation(
    [{ text: "I make it.", calls: [{ name: "Bash", input: { command } }] }, "Done."],
    { columns: 20, rows: 5, words: ["make it now"] },
  );
  await pty.shows("▲ main", "tab", "1 question");
  pty.type(keys.tab);
  await pty.shows("touch made", "v: all", "1 yes 2 always");
  await afterGuard();
  pty.type("v");
  await pty.shows("What would run", "esc");
  pty.type("G");
  await pty.shows("# line 29");
  pty.type(keys.escape);
  await pty.shows("touch made", "1 yes 2 always");
  pty.type("1");
  await pty.shows("Done.");
  expect(existsSync(join(place.cwd, "made"))).toBe(true);
  pty.type("?");
  await pty.shows("enter", "send");
  pty.resize(80, 12);
  await pty.shows("enter                   send");
});
