import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { expect, it } from "vitest";
import type { RunEvent } from "../conversation/run-event.ts";

const sessionId = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";

/** A session and one child as another program leaves them: without plans and endings. */
function writeForeignSession(transcripts: string): string {
  const line = (type: string, uuid: string, parentUuid: string | null, content: string, more: object = {}) =>
    `${JSON.stringify({ type, uuid, parentUuid, sessionId, timestamp: "2026-01-01T00:00:00.000Z", message: { role: type, id: uuid, content }, ...more })}\n`;
  const child = join(transcripts, sessionId, "subagents", "agent-a1.jsonl");
  mkdirSync(join(transcripts, sessionId, "subagents"), { recursive: true });
  writeFileSync(
    join(transcripts, `${sessionId}.jsonl`),
    line("user", "u1", null, "Hi.") + line("assistant", "u2", "u1", "Hello."),
  );
  writeFileSync(child, line("user", "c1", null, "Look.", { isSidechain: true, agentId: "a1" }));
  writeFileSync(
    child.replace(".jsonl", ".meta.json"),
    JSON.stringify({ agentType: "Explore", description: "look" }),
  );
  return child;
}

it("[TRN-4] a session that another program wrote is taken up without settling or reporting of its children", async () => {
  const received: string[] = [];
  await using sample = await createSampleRuntime(["Yes."], {
    hooks: [{ event: "SubagentStop", run: async () => void received.push("stop") }],
    onWarning: (text) => void received.push(text),
  });
  const child = writeForeignSession(transcriptsOf(sample));
  const before = readFileSync(child, "utf8");
  await using session = await sample.runtime.open({ resume: sessionId });
  const events: RunEvent[] = [];
  const run = session.prompt("Continue.");
  for await (const event of run.events) events.push(event);
  expect(await run.result).toMatchObject({ text: "Yes." });
  expect(await run.result).not.toHaveProperty("interruptedAgents");
  expect(events.map(({ type }) => type)).not.toContain("agents-interrupted");
  expect(received).toEqual([]);
  expect(readFileSync(child, "utf8")).toBe(before);
  expect(await sample.runtime.interrupted()).toEqual({ agents: [], sessions: [] });
});

const launchedBy = (callId: string, agentId: string) => ({
  message: { role: "user", content: [{ type: "tool_result", tool_use_id: callId, content: "It works." }] },
  toolUseResult: { status: "async_launched", agentId },
});

/** A session of our own, and children whose process died; each is `[id, plan]`, in the foreground by its plan. */
function writeCutOffSession(
  transcripts: string,
  children: Readonly<Record<string, object>>,
  mainLines: readonly object[] = [],
): void {
  const timestamp = "2026-01-01T00:00:00.000Z";
  const text = (lines: readonly object[]) =>
    lines.map((line) => `${JSON.stringify({ sessionId, timestamp, ...line })}\n`).join("");
  const said = (uuid: string, content: string) => ({
    type: "user",
    uuid,
    parentUuid: null,
    message: { role: "user", content },
  });
  const folder = join(transcripts, sessionId, "subagents");
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(transcripts, `${sessionId}.jsonl`),
    text([
      said("u1", "Hi."),
      { type: "retinue-plan", plan: {} },
      ...mainLines.map((line, index) => ({
        type: "user",
        uuid: `m${index}`,
        parentUuid: index === 0 ? "u1" : `m${index - 1}`,
        ...line,
      })),
    ]),
  );
  for (const [agentId, task] of Object.entries(children)) {
    const mark = { isSidechain: true, agentId };
    const plan = {
      ...mark,
      type: "retinue-plan",
      plan: { task: { agentType: "general-purpose", description: agentId, ...task } },
    };
    writeFileSync(
      join(folder, `agent-${agentId}.jsonl`),
      text([plan, { ...said(`c-${agentId}`, `BE ${agentId}`), ...mark }]),
    );
  }
}

function transcriptsOf({ workspace, home }: SampleRuntime): string {
  return createPaths({ cwd: workspace.project, home, environment: {}, platform: process.platform })
    .transcripts;
}

it("[TRN-4] one that was moved to the background continues by itself, one that was later waited for does not", async () => {
  await using sample = await createSampleRuntime([
    { match: "BE a1", text: "One is done." },
    { text: "I wait." },
    { text: "Good." },
  ]);
  mkdirSync(join(sample.home, ".claude"), { recursive: true });
  writeFileSync(join(sample.home, ".claude/settings.json"), '{ "resumeInterruptedAgents": true }');
  writeCutOffSession(transcriptsOf(sample), { a1: { callId: "t1" }, a2: { callId: "t9" } }, [
    launchedBy("t1", "a1"),
    launchedBy("t2", "a2"),
  ]);
  await using session = await sample.runtime.open({ resume: sessionId });
  const events: RunEvent[] = [];
  for await (const event of session.prompt("Continue.").events) events.push(event);
  const [reported] = events.flatMap((event) => (event.type === "agents-interrupted" ? [event.agents] : []));
  expect(reported?.map(({ id, background, standing }) => [id, background, standing]).sort()).toEqual([
    ["a1", true, "resumed"],
    ["a2", false, "waiting"],
  ]);
});

it.each([
  ["when it has been silent long enough", {}, 300],
  ["immediately where the session is taken over", { takeOver: true }, 60_000],
])("[TRN-4] a child of a machine that cannot be seen is found cut off %s", async (_, options, expiresAfterMs) => {
  await using sample = await createSampleRuntime([{ text: "Good." }]);
  const transcripts = transcriptsOf(sample);
  writeCutOffSession(transcripts, { a1: { callId: "t1" } });
  const owner = {
    pid: 7,
    machine: "elsewhere pid:[1]",
    started: "another-boot/1",
    expiresAfterMs,
    token: "x",
  };
  const lock = join(transcripts, sessionId, "subagents", "agent-a1.jsonl.lock");
  writeFileSync(lock, JSON.stringify(owner));
  await using session = await sample.runtime.open({ resume: sessionId, ...options });
  const events: RunEvent[] = [];
  for await (const event of session.prompt("Continue.").events) events.push(event);
  const [reported] = events.flatMap((event) => (event.type === "agents-interrupted" ? [event.agents] : []));
  expect(reported?.map(({ id }) => id)).toEqual(["a1"]);
  expect(existsSync(lock)).toBe(false);
});

it("[HKS-8] the one that leaves does not wait for hooks that hang over the stop of a child that died", async () => {
  const leave = new AbortController();
  let calls = 0;
  await using sample = await createSampleRuntime([], {
    hooks: [
      {
        event: "SubagentStop",
        run: async (_input, { signal }) => {
          calls += 1;
          leave.abort();
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        },
      },
    ],
  });
  const ids = Array.from({ length: 20 }, (_, index) => [`a${index}`, {}] as const);
  writeCutOffSession(transcriptsOf(sample), Object.fromEntries(ids));
  await using session = await sample.runtime.open({ resume: sessionId });
  const result = await session.prompt("Continue.", { signal: leave.signal }).result;
  expect(result.status).toBe("stopped");
  // The others are settled by the next process.
  expect(calls).toBeLessThan(20);
});

it("[TRN-4] one that is left as it was is reported once, and hooks are notified of its stop once, whatever they answer [HKS-8]", async () => {
  const received: string[] = [];
  await using sample = await createSampleRuntime([{ text: "Later." }], {
    hooks: [
      {
        event: "SubagentStop",
        run: async () => {
          received.push("stop");
          return { decision: "block", reason: "Do more." };
        },
      },
    ],
    onWarning: (text) => void received.push(text),
  });
  writeCutOffSession(transcriptsOf(sample), { a1: {} });
  for (const runtime of [sample.runtime, sample.restart([{ text: "Later." }]).runtime]) {
    await using session = await runtime.open({ resume: sessionId });
    await session.prompt("Continue.").result;
  }
  expect(received).toEqual(["stop", expect.stringContaining("Agent a1 ")]);
  expect((await sample.runtime.interrupted()).agents).toMatchObject([{ id: "a1", state: "interrupted" }]);
});

it("[TRN-4] where nothing may run in the background, nothing continues by itself", async () => {
  await using sample = await createSampleRuntime([{ text: "I see." }], {
    env: { CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1" },
  });
  mkdirSync(join(sample.home, ".claude"), { recursive: true });
  writeFileSync(join(sample.home, ".claude/settings.json"), '{ "resumeInterruptedAgents": true }');
  writeCutOffSession(transcriptsOf(sample), { a1: { background: true } });
  await using session = await sample.runtime.open({ resume: sessionId });
  const events: RunEvent[] = [];
  for await (const event of session.prompt("Continue.").events) events.push(event);
  expect(events.find(({ type }) => type === "agents-interrupted")).toMatchObject({
    agents: [{ id: "a1", background: true, standing: "waiting" }],
  });
});

it("[TRN-4] one that cannot continue by itself is never said to, and the main agent is informed of it once", async () => {
  const notices: string[] = [];
  await using sample = await createSampleRuntime([{ text: "I see." }], {
    onWarning: (text) => void notices.push(text),
  });
  mkdirSync(join(sample.home, ".claude"), { recursive: true });
  writeFileSync(join(sample.home, ".claude/settings.json"), '{ "resumeInterruptedAgents": true }');
  writeCutOffSession(transcriptsOf(sample), { a1: { agentType: "gone", background: true } });
  const again = sample.restart([{ text: "I see." }]);
  for (const runtime of [sample.runtime, again.runtime]) {
    await using session = await runtime.open({ resume: sessionId });
    await session.prompt("Continue.").result;
  }
  expect(
    notices.filter((text) => text.includes('could not be resumed: There is no agent "gone"')),
  ).toHaveLength(2);
  const asked = JSON.stringify(again.requests.at(-1)?.messages);
  expect(asked.match(/<task-id>a1</g)).toHaveLength(1);
  expect(asked).not.toContain("has been resumed");
});
