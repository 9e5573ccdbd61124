import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openConversation } from "./pty-stage.ts";

const script = `export const meta = { name: 'sweep', description: 'Sweeps files' }
phase('Look')
await parallel(['one', 'two'].map((file) => () => agent('PIECE ' + file, { label: file })))
phase('Judge the whole')
return await agent('PIECE last: wait', { label: 'judge' })`;

test.each([
  [80, 24],
  [200, 50],
])("a workflow is shown by phase while it runs, and leaves one line [WFL-5]: %i columns", async (columns, rows) => {
  const wait = { calls: [{ name: "Bash", input: { command: "until [ -e go ]; do sleep 0.05; done" } }] };
  const { pty, place } = await openConversation(
    [
      { match: "PIECE last", ...wait },
      { match: "PIECE", text: "done", times: "any" },
      { calls: [{ name: "Workflow", input: { script } }] },
      { text: "It runs.", times: "any" },
    ],
    {
      columns,
      rows,
      words: ["--allowedTools", "Bash,Workflow", "--permission-mode", "default", "begin the work"],
    },
  );
  await pty.shows("▸ sweep", "Judge the whole");
  await pty.shows("2 done", "1 running");
  const live = await pty.screen();
  expect(live.find((line) => line.includes("▸ sweep"))).toMatch(/▸ sweep {2}2 of 3 agents done · .*\d+ s/);
  expect(live.find((line) => line.includes("├ Look"))).toMatch(/├ Look +2 done/);
  expect(live.find((line) => line.includes("└ Judge the whole"))).toMatch(/└ Judge the whole {2}1 running/);
  expect(live.filter((line) => line.length > columns)).toEqual([]);
  writeFileSync(join(place.cwd, "go"), "");
  await pty.shows("✓ sweep workflow");
  await pty.isMissing("▸ sweep");
  const all = await pty.all();
  expect(all.filter((line) => line.includes("✓ ") && line.includes("sweep"))).toHaveLength(1);
  expect(all.some((line) => line.includes("workflow-subagent") && line.startsWith("✓"))).toBe(false);
  await pty.isMissing("esc to interrupt");
  pty.type("/workflows\r");
  await pty.shows("Saved workflows", "completed", "3/3 agents");
  expect(existsSync(join(place.cwd, "go"))).toBe(true);
});
