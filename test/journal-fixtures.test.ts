import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createPaths } from "@retinue/config/settings/paths.ts";
import type { AgentEvent } from "@retinue/core/conversation/agent-event.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import { readAgentPlan } from "@retinue/core/planning/read-agent-plan.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { expect, it } from "vitest";

// Written by version 1 of the journal: two runs of a main agent, a child that ended, and one that was cut off by a crash.
const fixtures = join(import.meta.dirname, "fixtures", "journal-1");
const sessionId = "6f6f0d5a-1111-4222-8333-944455556666";
const endedId = "aea65eaa96eb5660e";
const cutOffId = "aa735c31a760a968a";

it("resumes a session of an earlier version with its conversation and the child that was cut off [TRN-4]", async () => {
  await using sample = await openFixture(["Continued."]);
  await using session = await sample.runtime.open({ resume: sessionId });
  expect(session.messages()).toHaveLength(8);
  const run = session.run("Continue.");
  const events: AgentEvent[] = [];
  for await (const event of run.events) events.push(event);
  expect(await run.result).toMatchObject({ text: "Continued.", interruptedAgents: 1 });
  expect(events.find(({ type }) => type === "agents-interrupted")).toMatchObject({
    agents: [{ id: cutOffId, agentType: "reviewer", description: "review again", standing: "waiting" }],
  });
  expect(JSON.stringify(sample.requests[0]?.messages)).toContain("The reviewer likes it.");
});

it.each([
  endedId,
  cutOffId,
])("resumes the child %s of an earlier version within its first rights", async (id) => {
  await using sample = await openFixture(["Continued."]);
  await using session = await sample.runtime.open({ resume: sessionId });
  const child = session.spawn("reviewer", "Continue.", { resume: id });
  expect(await child.result).toMatchObject({ status: "completed", text: "Continued." });
  const [request] = sample.requests;
  expect(JSON.stringify(request?.messages)).toContain("A note.");
  const tools = new Set(request?.tools.map(({ name }) => name));
  expect([...tools].sort()).toEqual(["Bash", "Edit", "Grep", "Read"]);
});

it("reads and carries out a plan of an earlier version", async () => {
  await using sample = await openFixture(["Done."]);
  await using session = await sample.runtime.open({ sessionId: crypto.randomUUID() });
  const reading = readAgentPlan(JSON.parse(placed("child-plan.json", sample)), "child");
  if (reading.type !== "plan") throw new Error(`${reading.at}: ${reading.expected}`);
  const child = session.runPlan(reading.plan);
  expect(await child.result).toMatchObject({ status: "completed", text: "Done." });
});

it("decides the same plans as before", async () => {
  await using sample = await openFixture([], { transcripts: false });
  await using session = await sample.runtime.open({ sessionId });
  expect(readAgentPlan(JSON.parse(placed("main-plan.json", sample)), "main")).toMatchObject({ type: "plan" });
  expect(withoutText(session.plan)).toMatchObject(withoutText(JSON.parse(placed("main-plan.json", sample))));
  await expectSamePlan(session, sample, "child-plan.json", { limits: { seconds: 60 } });
  await expectSamePlan(session, sample, "child-plan-worktree.json", {
    background: true,
    isolation: "worktree",
  });
});

async function expectSamePlan(
  session: Session,
  sample: SampleRuntime,
  file: string,
  options: object,
): Promise<void> {
  const { plan } = JSON.parse(placed(file, sample)) as { readonly plan: PlanText };
  const { agentType, description, prompt } = plan.task;
  const planned = await session.planAgent({ agentType, description, prompt, origin: "program", ...options });
  if (planned.type !== "planned") throw new Error(planned.reason);
  const { agent: _agent, ...expected } = withoutText(plan);
  expect(withoutText(planned.plan)).toMatchObject(expected);
}

interface PlanText {
  readonly system: readonly string[];
  readonly agent: { readonly id: string };
  readonly task: { readonly agentType: string; readonly description: string; readonly prompt: string };
}

/** The prompt has the date in it, and tools of the machine. */
function withoutText<Plan extends { readonly system: readonly string[] }>(plan: Plan) {
  const { system, ...rest } = plan;
  return { ...rest, parts: system.length };
}

async function openFixture(
  steps: readonly Step[],
  { transcripts: hasTranscripts = true } = {},
): Promise<SampleRuntime> {
  // That version had no workflows.
  const env = { PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", CLAUDE_CODE_DISABLE_WORKFLOWS: "1" };
  const sample = await createSampleRuntime(steps, { trusted: true, env });
  const { project } = sample.workspace;
  cpSync(join(fixtures, "project"), project, { recursive: true });
  if (!hasTranscripts) return sample;
  const environment = { PATH: process.env["PATH"] };
  const { transcripts } = createPaths({
    cwd: project,
    home: sample.home,
    environment,
    platform: process.platform,
  });
  for (const name of readdirSync(join(fixtures, "transcripts"), { recursive: true, encoding: "utf8" })) {
    if (statSync(join(fixtures, "transcripts", name)).isDirectory()) continue;
    mkdirSync(join(transcripts, name, ".."), { recursive: true });
    writeFileSync(join(transcripts, name), placed(join("transcripts", name), sample));
  }
  return sample;
}

/** The text of a fixture, with its paths below the folder of the test. */
function placed(name: string, { workspace }: SampleRuntime): string {
  return readFileSync(join(fixtures, name), "utf8")
    .replaceAll("-fixture-", `${workspace.root.replaceAll(/[^a-zA-Z0-9]/g, "-")}-`)
    .replaceAll("/fixture", workspace.root);
}
