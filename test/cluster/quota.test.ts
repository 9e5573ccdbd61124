import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { agentLog, toAgentRecord } from "@retinue/cluster/agent-records.ts";
import { openFileStore } from "@retinue/cluster/files/open-file-store.ts";
import { serveSessions } from "@retinue/cluster/serve-sessions.ts";
import { waitForEnd } from "@retinue/cluster/start-agent.ts";
import { startSession } from "@retinue/cluster/start-session.ts";
import { textOf } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { expect, onTestFinished, test } from "vitest";

const callsIn = ({ messages }: ModelRequest): number =>
  messages.filter(
    ({ role, content }) =>
      role === "assistant" && typeof content !== "string" && content.some(({ type }) => type === "tool_use"),
  ).length;

test("an agent of a store gives its worker back while it waits for a quota, and continues after it [LIM-7]", async () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-quota-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 3 }));
  const folder = join(root, "project");
  mkdirSync(folder);
  for (const number of [0, 1, 2, 3]) writeFileSync(join(folder, `file-${number}.txt`), `text ${number}`);
  await using provider = await startFakeProvider({
    quota: { requests: 3, everyMs: 2000 },
    respond(request) {
      const last = request.messages.at(-1);
      if (last !== undefined && textOf(last).includes("Hand in what you have")) return "Handed in.";
      const done = callsIn(request);
      return done >= 4
        ? "All is read."
        : { calls: [{ name: "Read", input: { file_path: `file-${done}.txt` } }] };
    },
  });
  const store = await openFileStore(join(root, "store"));
  onTestFinished(() => store.close());
  const env = {
    PATH: process.env["PATH"],
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "key",
    ANTHROPIC_MODEL: "claude-sonnet-4-5",
    RETINUE_LOCAL_MODELS: "0",
  };
  let running = 0;
  await using _worker = await serveSessions(store, {
    runtime: { env, home: join(root, "home"), settings: { quota: { wait: true } } },
    slots: 1,
    workspaces: join(root, "workspaces"),
    onRunning: (count) => {
      running = count;
    },
  });
  const agent = await startSession(store, {
    prompt: "Read all.",
    workspace: { type: "pinned", directory: folder, machine: hostname() },
  });
  const ending = await waitForEnd(store, agent, { timeoutMs: 60_000 });
  expect(ending).toMatchObject({ status: "completed", result: { text: "All is read." } });
  expect(running).toBe(0);
  const parked = (await store.log.read(agentLog(agent))).flatMap(({ record: value }) => {
    const record = toAgentRecord(value);
    return record?.type === "parked" ? [record.waitingFor] : [];
  });
  expect(parked[0]).toMatchObject({ type: "quota", provider: "anthropic", until: expect.any(Number) });
  const refused = provider.requests.filter(({ status }) => status === "failed");
  expect(refused.length).toBeLessThanOrEqual(parked.length);
  const last = provider.requests.at(-1)?.request.messages ?? [];
  for (const number of [0, 1, 2, 3])
    expect(JSON.stringify(last).match(new RegExp(`text ${number}`, "g"))).toHaveLength(1);
});
