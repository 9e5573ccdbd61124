import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runCommand } from "../scenarios/run-command.ts";
import { keys, openConversation } from "./pty-stage.ts";

const ctrlX = "\u0018";

test("/approvals lists what waits in the inbox, answers it and takes grants back [PRM-6]", async () => {
  const { pty, place, provider } = await openConversation([
    { calls: [{ name: "Bash", input: { command: "touch one" } }] },
    { calls: [{ name: "Bash", input: { command: "touch two" } }] },
    { calls: [{ name: "Bash", input: { command: "touch three" } }] },
    "All three were tried.",
  ]);
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  const run = runCommand(place, ["-p", "make them", "--approvals", "wait"], { environment });
  const isMade = (name: string): boolean => existsSync(join(place.cwd, name));
  await pty.shows("default");
  pty.type(`/approvals nonsense${keys.enter}`);
  await pty.shows('takes nothing but "all"');
  const open = async (command: string): Promise<void> => {
    // The other process needs a moment until its question is on disk.
    while (!(await pty.screen()).join("\n").includes(`▲ Bash  ${command}`)) {
      pty.type(`/approvals${keys.enter}`);
      await pty.shows("Questions that wait");
      if ((await pty.screen()).join("\n").includes(`▲ Bash  ${command}`)) break;
      pty.type(keys.escape);
      await pty.isMissing("Questions that wait");
    }
    pty.type(keys.enter);
    await pty.shows("A question that waits", command, "1 yes");
  };
  await open("touch one");
  pty.type(keys.escape);
  await pty.shows("Questions that wait", "touch one");
  pty.type(keys.enter);
  await pty.shows("A question that waits");
  pty.type("1");
  await pty.isMissing("A question that waits");
  pty.type(keys.escape);
  await pty.isMissing("Questions that wait");
  await open("touch two");
  expect(isMade("one")).toBe(true);
  pty.type("e");
  await pty.shows("the rule to store");
  pty.type(`${"\u007f".repeat(40)}Bash(touch t*)${keys.enter}`);
  await pty.shows("do not ask again for Bash(touch t*)");
  pty.type(keys.enter);
  const { code, out } = await run;
  expect([code, out, isMade("two"), isMade("three")]).toEqual([0, "All three were tried.\n", true, true]);
  await pty.shows("✓ Bash  touch two");
  pty.type(ctrlX);
  await pty.shows("Nothing waits for an answer, and no grant holds.");
});
