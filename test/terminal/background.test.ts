import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { becomes } from "@retinue/testing/becomes.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { expect, onTestFinished, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { createPlace } from "../scenarios/run-command.ts";
import { keys, openPty } from "./pty-stage.ts";

test("an attached terminal says what waits for an answer, and answers it; leaving it ends nothing [CLI-3, APR-1]", async () => {
  const write = { name: "Write", input: { file_path: "new.txt", content: "new" } };
  const provider = await startFakeProvider({
    respond: ({ messages }) =>
      messages.some(({ role }) => role === "assistant") ? "It is written." : { calls: [write] },
  });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const environment = {
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "x",
    HOME: place.home,
    PATH: process.env["PATH"] ?? "",
  };
  const words = [join(projectRoot, "bin/retinue.js"), "--bg", "--trust", "--name", "job", "Write it."];
  const id = execFileSync(process.execPath, words, { cwd: place.cwd, env: environment, encoding: "utf8" });
  const attached = openPty(place, ["attach", id.trim()], { environment });
  const other = openPty(place, ["attach", "job"], { environment });
  const question = "main waits for an answer: Write new.txt";
  await attached.shows("runs in the background", question, "/approvals");
  await other.shows(question);
  other.type("\u0004");
  expect((await other.exited).code).toBe(0);
  attached.type(`/approvals${keys.enter}`);
  await attached.shows("Questions that wait", "▲ Write");
  attached.type(keys.enter);
  await attached.shows("A question that waits", "1 yes");
  expect(existsSync(join(place.cwd, "new.txt"))).toBe(false);
  attached.type("1");
  await becomes(() => existsSync(join(place.cwd, "new.txt")));
  attached.type(keys.escape);
  await attached.shows("It is written.", "The session has ended");
});
