import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createOverviewSource, followLive } from "@retinue/core/kernel/live/follow-session.ts";
import { expect, onTestFinished, test } from "vitest";
import { agentLog, inboxLog, liveTopic } from "../agent-records.ts";
import { openStore } from "../open-store.ts";
import type { JsonValue } from "../store.ts";
import { mirrorStore } from "./mirror-store.ts";

const id = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const child = "4f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const line = (value: object): string => `${JSON.stringify(value)}\n`;
const planned = (plan: JsonValue, tree: string): JsonValue => ({ type: "planned", plan, needs: [], tree });
const claimed: JsonValue = { type: "claimed", worker: "w", version: "1" };
const entry = (own: JsonValue): JsonValue => ({ type: "entry", entry: own });
const piece = (path: string, text: string, from = 0): JsonValue => entry({ type: "file", path, from, text });
const prompt = line({ type: "user", uuid: "u1", message: { role: "user", content: "Count." } });
const said = line({
  type: "assistant",
  uuid: "a1",
  message: { id: "m1", model: "m", content: [{ type: "text", text: "Four." }] },
});

async function openMirror() {
  const folder = mkdtempSync(join(tmpdir(), "retinue-mirror-"));
  const store = await openStore(pathToFileURL(folder).href);
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await store.log.append(agentLog(id), [
    planned({ type: "session", sessionId: id }, id),
    claimed,
    piece(`${id}.jsonl`, prompt),
    piece(`../${id}.jsonl`, "outside"),
    piece(`${id}/../x.jsonl`, "outside"),
  ]);
  const mirror = await mirrorStore(store, (error) => {
    throw error;
  });
  onTestFinished(() => mirror[Symbol.asyncDispose]());
  const place = { transcripts: join(mirror.projects, mirror.project), sessionId: id };
  return { store, mirror, place, overview: createOverviewSource(place) };
}

test("sessions of a store are shown as they grow, children on other workers below them [STU-1]", async () => {
  const { store, mirror, overview, place } = await openMirror();
  expect(await overview.load()).toMatchObject({
    session: { id, isLive: true },
    agents: [{ id: "main", state: "running", prompt: "Count." }],
  });
  expect(existsSync(join(place.transcripts, "x.jsonl"))).toBe(false);
  await store.log.append(agentLog(child), [
    planned({ type: "plan", sessionId: child, plan: { agent: { id: "ahelper" } } }, id),
    claimed,
    piece(`${child}/subagents/agent-ahelper.jsonl`, prompt),
  ]);
  await store.log.append(agentLog(id), [piece(`${id}.jsonl`, said, prompt.length)]);
  store.bus.publish(agentLog(id), 4);
  await expect
    .poll(async () => (await overview.load()).agents.map((agent) => [agent.id, agent.state]), {
      timeout: 10_000,
    })
    .toEqual([
      ["main", "running"],
      ["ahelper", "running"],
    ]);
  await store.log.append(agentLog(id), [{ type: "ended", ending: { status: "completed", result: null } }]);
  store.bus.publish(agentLog(id), "ended");
  await expect
    .poll(async () => (await overview.load()).agents[0])
    .toMatchObject({ isLive: false, result: "Four." });
  await mirror[Symbol.asyncDispose]();
  expect(existsSync(mirror.projects)).toBe(false);
});

test("what is streamed through the store reaches its viewers [STU-1]", async () => {
  const { store, place } = await openMirror();
  const seen: string[] = [];
  const stop = followLive(place, {
    send: (pieces) => seen.push(...pieces.map(({ agentId, text = "." }) => `${agentId} ${text}`)),
    onError: () => undefined,
  });
  onTestFinished(stop);
  store.bus.publish(liveTopic(id), {
    type: "model-streamed",
    event: { type: "text-delta", index: 0, text: "Fo" },
  });
  await expect.poll(() => seen).toEqual(["main Fo"]);
});

test("acts and answers go through the store, which keeps who gave them [STU-2]", async () => {
  const { store, mirror, overview } = await openMirror();
  const question = {
    id: "0123456789abcdef",
    tool: "Bash",
    input: { command: "make" },
    reason: "no rule",
    path: ["main"],
  };
  const waitingFor = { type: "approval", question };
  await store.log.append(agentLog(id), [entry({ type: "asked", question }), { type: "parked", waitingFor }]);
  store.bus.publish(agentLog(id), 6);
  await expect
    .poll(async () => (await overview.load()).questions)
    .toMatchObject([{ id: "0123456789ab", tool: "Bash" }]);
  const about = { project: "store", sessionId: id, agentId: "main" };
  const asked = { ...about, question: "0123456789ab", digest: "x" };
  await expect(
    mirror.act({ ...asked, action: "approve", grant: { scope: "session", maxUses: 3 } }, "ada"),
  ).rejects.toThrow("cannot have limits");
  await mirror.act({ ...asked, action: "approve", grant: { scope: "session" } }, "ada");
  await expect(mirror.act({ ...asked, action: "deny" }, "bea")).rejects.toThrow("it was allowed by ada");
  await mirror.act({ ...about, action: "message", text: "Left too." }, "ada");
  const messages = (await store.log.read(inboxLog(id))).map(({ record }) => JSON.stringify(record));
  expect(messages[0]).toContain('"question":"0123456789abcdef","answer":{"type":"allow","for":"session"}');
  expect(messages[1]).toContain("Left too.");
  expect(await mirror.act({ ...about, action: "stop" }, "ada")).toMatchObject({
    outcome: `${id} was stopped.`,
  });
  await expect(mirror.act({ ...about, action: "fork" }, "ada")).rejects.toThrow("not possible");
  const acts = await store.log.read(`acts/${id}`);
  expect(acts.map(({ record }) => record)).toContainEqual(
    expect.objectContaining({ action: "stop", state: "done", by: expect.objectContaining({ user: "ada" }) }),
  );
  expect((await overview.load()).acts?.at(-1)).toMatchObject({
    action: "fork",
    state: "failed",
    by: "ada through studio",
  });
  expect(readFileSync(join(mirror.projects, mirror.project, id, "acts.jsonl"), "utf8")).toContain("ada");
});
