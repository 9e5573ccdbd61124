import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { expect, onTestFinished, test } from "vitest";

const meta = "export const meta = { name: 'w', description: 'one' };\n";
/** The one step of a script; its error is the result. */
const one = (verify: unknown) =>
  `${meta}try { return await agent('conv:one', { label: 'one', verify: ${JSON.stringify(verify)} }) } catch (error) { return 'refused: ' + error.message }`;

async function stage(
  steps: readonly Step[] = [{ text: "Done.", times: "any" }],
  options: RuntimeOptions = {},
): Promise<SampleRuntime> {
  const permissions = { allow: ["Bash(test *)", "Bash(printf *)", "Bash(touch *)", "Edit(./*.txt)"] };
  const sample = await createSampleRuntime(steps, { settings: { permissions }, ...options });
  onTestFinished(() => sample[Symbol.asyncDispose]());
  return sample;
}

test.each<[string, unknown]>([
  ["a command", "test -f done.txt"],
  ["a list", ["test -d .", "test -f done.txt"]],
  ["an entry", { run: "test -f done.txt", timeout: 60, retries: 1 }],
  ["a list of entries", ["test -d .", { run: "test -f done.txt", retries: 1 }]],
])("a step whose checks are %s gets what failed back, and counts only when they pass [VRF-1, VRF-3]", async (_form, verify) => {
  const write = { calls: [{ name: "Bash", input: { command: "touch done.txt" } }] };
  const good = await stage(["Done.", write, "Done now."]);
  expect(await good.runtime.workflow(one(verify)).result).toBe("Done now.");
  expect(JSON.stringify(good.requests[1]?.messages.at(-1))).toContain("`test -f done.txt` failed");

  const bad = await stage();
  expect(await bad.runtime.workflow(one(verify)).result).toBe(
    "refused: The check `test -f done.txt` of the step failed with exit code 1.",
  );
  // As often as requested, else twice.
  expect(bad.requests).toHaveLength(JSON.stringify(verify).includes("retries") ? 2 : 3);
});

test.each<[unknown, RegExp]>([
  [{ run: "true", retry: 1 }, /unknown key \\?"retry/],
  [[], /names no command/],
  ["  ", /a command is empty/],
  [true, /neither a command nor/],
  [["true", 7], /neither a command nor/],
])("a step whose checks cannot be read (%j) does not start, instead of working unchecked [VRF-1]", async (verify, reason) => {
  const { runtime, requests } = await stage();
  expect(await runtime.workflow(one(verify)).result).toMatch(reason);
  expect(requests).toEqual([]);
});

test("a check of a step that no rule allows and no person can be asked about fails the step with that reason [VRF-1]", async () => {
  const { runtime, workspace, requests } = await stage();
  expect(await runtime.workflow(one("node -e 1")).result).toMatch(
    /^refused: The check `node -e 1` of the step failed: it was not run: ./,
  );
  // Nothing that the agent could do about it.
  expect(requests).toHaveLength(1);
  expect(existsSync(workspace.path("ran"))).toBe(false);
});

test("where the provider fails, a step with checks is null like every other [VRF-1, WFL-1]", async () => {
  const { runtime } = await stage([{ failure: "invalid-request", times: "any" }]);
  const state = await runtime.workflow(one("test -f done.txt")).ended;
  expect(state).toMatchObject({ status: "completed", result: "null" });
  expect(state.failures.join()).toContain("The scripted request is invalid.");
});

test("files that change while the checks of a step run make it fail [VRF-3]", async () => {
  const { runtime } = await stage();
  const verify = { run: "printf x >> log.txt", retries: 0 };
  expect(await runtime.workflow(one(verify)).result).toBe(
    "refused: The files of the step changed while its checks ran, so none of them counts.",
  );
});

test("a step that was checked otherwise runs again, and one that was checked the same is taken [VRF-1, WFL-3]", async () => {
  const sample = await stage();
  const first = sample.runtime.workflow(one("test -d ."));
  const { runId } = await first.ended;
  const agents = (count: number) => expect(sample.requests).toHaveLength(count);
  const resume = async (verify: unknown) =>
    sample.runtime.workflow(one(verify), undefined, { resumeRun: runId }).result;
  expect(await resume("test -d .")).toBe("Done.");
  agents(1);
  expect(await resume(["test -d .", { run: "test -f done.txt", retries: 0 }])).toMatch(/^refused: The check/);
  agents(2);
});

test("a step that ended with a failed check before its process died is no finished one [VRF-2, WFL-3]", async () => {
  const sample = await stage();
  const verify = { run: "test -f done.txt", retries: 0 };
  const { runId } = await sample.runtime.workflow(one(verify)).ended;
  // As if the process had died between the end of the agent and the line that says so.
  const projects = join(sample.home, ".claude/projects");
  const names = readdirSync(projects, { recursive: true, encoding: "utf8" });
  const journal = join(projects, names.find((name) => name.endsWith("journal.jsonl")) ?? "");
  const lines = readFileSync(journal, "utf8").split("\n");
  const kept = lines.filter((line) => line !== "" && !line.includes('"type":"failed"'));
  expect(kept).toHaveLength(lines.length - 2);
  writeFileSync(journal, `${kept.join("\n")}\n`);
  const { runtime } = sample.restart([{ text: "Again.", times: "any" }]);
  expect(await runtime.workflow(one(verify), undefined, { resumeRun: runId }).result).toMatch(
    /^refused: The check/,
  );
  await sample.workspace.write("done.txt", "");
  expect(await runtime.workflow(one(verify), undefined, { resumeRun: runId }).result).toBe("Again.");
});

test("the bill of a workflow names the checks of its steps [BIL-1, VRF-1]", async () => {
  const { runtime } = await stage();
  await using session = await runtime.open();
  const script = `${meta}await agent('a', { verify: ['npm test', { run: 'npm run lint', retries: 0 }] })\nawait agent('b', { verify: args.check })\nawait agent('c', { verify: await agent('d') })`;
  const bill = await session.workflows?.bill({ script, args: { check: "make" } });
  expect(bill?.checks).toEqual(["npm test", "npm run lint", "make", undefined]);
});
