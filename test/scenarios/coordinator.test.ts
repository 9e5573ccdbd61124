import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { ScriptedCall, Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, type Place, runInProcess } from "./run-command.ts";

const lead = (fields: string) => `---\nname: lead\ndescription: Leads.\n${fields}\n---\nLEAD PROMPT\n`;
const worker = (fields: string) => `---\nname: worker\ndescription: Works.\n${fields}\n---\nWORKER PROMPT\n`;
const delegate: ScriptedCall = {
  name: "Agent",
  input: { description: "work", prompt: "Write it down.", subagent_type: "worker" },
};

/** A lead that delegates once, and a worker that makes the given calls, over HTTP. */
async function runLead(
  files: { readonly lead: string; readonly worker: string },
  calls: (place: Place) => readonly ScriptedCall[],
  flags: readonly string[] = [],
) {
  const place = createPlace();
  const steps: Step[] = [
    { match: "LEAD PROMPT", calls: [delegate] },
    { match: "WORKER PROMPT", calls: calls(place) },
    { match: "WORKER PROMPT", text: "Written." },
    { match: "LEAD PROMPT", text: "Done." },
  ];
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  place.write(".claude/agents/lead.md", lead(files.lead));
  place.write(".claude/agents/worker.md", worker(files.worker));
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  const arguments_ = ["-p", "go", "--agent", "lead", "--dangerously-skip-permissions", ...flags];
  const finished = await runInProcess(place, arguments_, { environment });
  const requests = provider.requests.map(({ request }) => request);
  const of = (prompt: string) => requests.filter(({ system }) => system.join("\n").includes(prompt));
  return { place, finished, lead: of("LEAD PROMPT"), worker: of("WORKER PROMPT"), provider };
}

const names = (request: { readonly tools: readonly { readonly name: string }[] } | undefined) =>
  [...(request?.tools ?? [])].map(({ name }) => name).sort();
const last = (request: { readonly messages: readonly unknown[] } | undefined) =>
  JSON.stringify(request?.messages.at(-1));

describe("a lead that only delegates and reads", () => {
  const files = { lead: "tools: Task(worker), Read", worker: "tools: Read, Write, Bash" };

  test("has a worker that writes and runs commands [TLS-1, TLS-6]", async () => {
    const run = await runLead(files, ({ cwd }) => [
      { name: "Write", input: { file_path: join(cwd, "made.txt"), content: "by the worker" } },
      { name: "Bash", input: { command: "echo run > ran.txt" } },
    ]);
    expect(run.finished).toMatchObject({ code: 0, out: "Done.\n" });
    expect(names(run.lead[0])).toEqual(["Agent", "Read"]);
    expect(names(run.worker[0])).toEqual(["Bash", "Read", "Write"]);
    expect(readFileSync(join(run.place.cwd, "made.txt"), "utf8")).toBe("by the worker");
    expect(existsSync(join(run.place.cwd, "ran.txt"))).toBe(true);
    run.provider.finish();
  });

  test("sees in the description of the tool only whom it can start, with what they get [AGT-2, TLS-6]", async () => {
    const run = await runLead(files, () => [{ name: "Read", input: { file_path: "/none" } }]);
    const agent = run.lead[0]?.tools.find(({ name }) => name === "Agent");
    const listed = agent?.description.split("Agents:\n")[1];
    expect(listed).toBe("- worker: Works. (Tools: Read, Write, Bash)");
    expect(JSON.stringify(agent)).not.toContain("general-purpose");
  });

  test("what the session does not have is not offered, and the lead learns it [TLS-1]", async () => {
    const run = await runLead(
      files,
      ({ cwd }) => [{ name: "Write", input: { file_path: join(cwd, "a"), content: "x" } }],
      ["--tools", "Task,Read,Bash"],
    );
    expect(names(run.worker[0])).toEqual(["Bash", "Read"]);
    const agent = run.lead[0]?.tools.find(({ name }) => name === "Agent");
    expect(agent?.description).toContain("- worker: Works. (Tools: Read, Bash)");
    expect(last(run.lead[1])).toContain("`Write` is not available to this agent");
    expect(last(run.lead[1])).toContain("--tools");
    expect(existsSync(join(run.place.cwd, "a"))).toBe(false);
  });

  test("a deny rule of the session takes a tool from the worker, with a note [TLS-1, PRM-4]", async () => {
    const run = await runLead(files, () => [{ name: "Read", input: { file_path: "/none" } }], [
      "--disallowedTools",
      "Bash",
    ]);
    expect(names(run.worker[0])).toEqual(["Read", "Write"]);
    expect(last(run.lead[1])).toContain("`Bash` is not available to this agent: the rule Bash");
  });
});

test("disallowedTools of the lead hold for its worker, whole ones at planning, narrow ones at the call [TLS-1, TLS-2]", async () => {
  const run = await runLead(
    {
      lead: "tools: Task(worker), Read\ndisallowedTools: Write, Bash(touch *)",
      worker: "tools: Read, Write, Bash",
    },
    () => [
      { name: "Bash", input: { command: "touch forbidden" } },
      { name: "Bash", input: { command: "echo written > forbidden" } },
      { name: "Bash", input: { command: "echo al''lowed" } },
    ],
  );
  expect(names(run.worker[0])).toEqual(["Bash", "Read"]);
  expect(existsSync(join(run.place.cwd, "forbidden"))).toBe(false);
  expect(last(run.worker[1])).toContain('"allowed');
  expect(last(run.lead[1])).toContain("`disallowedTools` of lead excludes it");
});

test("a worker without a list has the lead's tools, as far as the lead has them [TLS-1]", async () => {
  const run = await runLead({ lead: "tools: Task, Read, Bash(echo *)", worker: "model: inherit" }, () => [
    { name: "Bash", input: { command: "touch made" } },
  ]);
  expect(names(run.worker[0])).toEqual(["Bash", "Read"]);
  expect(last(run.worker[1])).toContain("may only make calls that match echo *");
  expect(existsSync(join(run.place.cwd, "made"))).toBe(false);
});
