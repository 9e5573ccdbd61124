import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { RunEvent } from "../conversation/run-event.ts";
import { createPaths } from "../settings/paths.ts";
import { createSampleRuntime } from "../testing/sample-runtime.ts";

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

it("[TRN-4] a session that another program wrote is taken up without settling or telling of its children", async () => {
  const heard: string[] = [];
  await using sample = await createSampleRuntime(["Yes."], {
    hooks: [{ event: "SubagentStop", run: async () => void heard.push("stop") }],
    notice: (text) => void heard.push(text),
  });
  const { transcripts } = createPaths({
    cwd: sample.workspace.project,
    home: sample.home,
    environment: {},
    platform: process.platform,
  });
  const child = writeForeignSession(transcripts);
  const before = readFileSync(child, "utf8");
  await using session = await sample.runtime.open({ resume: sessionId });
  const events: RunEvent[] = [];
  const run = session.prompt("Go on.");
  for await (const event of run) events.push(event);
  expect(await run).toMatchObject({ text: "Yes." });
  expect(await run).not.toHaveProperty("interruptedAgents");
  expect(events.map(({ type }) => type)).not.toContain("agents-interrupted");
  expect(heard).toEqual([]);
  expect(readFileSync(child, "utf8")).toBe(before);
  expect(await sample.runtime.interrupted()).toEqual({ agents: [], sessions: [] });
});
