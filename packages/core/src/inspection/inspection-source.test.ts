import { appendFile, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findInspected } from "./find-named-inspected.ts";
import { createInspectionSource } from "./inspection-source.ts";

const session = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const other = "3f0b9999-9a51-4c62-8d0c-5a4f3e2b1a00";
const now = Date.parse("2026-10-01T10:00:00.000Z");
const timestamp = new Date(now).toISOString();

let folder = "";
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "retinue-inspection-")));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const user = (uuid: string, text: string, more: object = {}) => ({
  type: "user",
  uuid,
  timestamp,
  message: { role: "user", content: text },
  ...more,
});
const answer = (uuid: string, more: object = {}) => ({
  type: "assistant",
  uuid,
  timestamp,
  costUSD: 1,
  message: { id: uuid, model: "m", content: [{ type: "text", text: `said ${uuid}` }] },
  ...more,
});

async function write(name: string, ...lines: readonly (object | string)[]): Promise<string> {
  const file = join(folder, name);
  await mkdir(dirname(file), { recursive: true });
  const texts = lines.map((line) => (typeof line === "string" ? line : `${JSON.stringify(line)}\n`));
  await writeFile(file, texts.join(""));
  return file;
}

const source = (agentId?: string) =>
  createInspectionSource({ transcripts: folder, sessionId: session, agentId, now: () => now });
const load = async () => source().load();

describe("[CLI-3] a session is put together from its files", () => {
  test("children of today's, of nested and of old places, and those inside the main file", async () => {
    await write(
      `${session}.jsonl`,
      user("u1", "Go."),
      answer("a1"),
      user("s1", "Look.", { isSidechain: true, parentUuid: null }),
      answer("s2", { isSidechain: true, parentUuid: "s1" }),
      user("s3", "Look too.", { isSidechain: true, parentUuid: null, agentId: "inside" }),
      {
        type: "assistant",
        uuid: "a2",
        message: { id: "a2", content: [{ type: "tool_use", id: "c", name: "Task", input: {} }] },
      },
      {
        type: "user",
        uuid: "u2",
        toolUseResult: { agentId: "old1234" },
        message: { content: [{ type: "tool_result", tool_use_id: "c", content: "x" }] },
      },
    );
    await write(`${session}/subagents/agent-abc.jsonl`, user("b1", "Child."), answer("b2"));
    await write(`${session}/subagents/agent-abc.meta.json`, '{"agentType":"Explore","description":"map"}');
    await write(`${session}/subagents/workflows/w/agent-deep.jsonl`, user("d1", "Deep."));
    await write("agent-old1234.jsonl", answer("o1"));
    await write("agent-stranger.jsonl", answer("x1"));
    const { agents, session: reported, totals } = await load();
    expect(agents.map(({ id }) => id).sort()).toEqual([
      "abc",
      "deep",
      "inside",
      "main",
      "old1234",
      "sidechain-s1",
    ]);
    expect(agents.find(({ id }) => id === "abc")).toMatchObject({
      agentType: "Explore",
      description: "map",
      totals: { turns: 1, costUsd: 1 },
      result: "said b2",
    });
    expect(reported).toMatchObject({ id: session, title: "Go.", isLive: false });
    expect(totals.turns).toBe(5);
  });

  test("broken, torn and unreadable files cost only themselves, and are noted", async () => {
    await write(`${session}.jsonl`, user("u1", "Go."), "nonsense\n", answer("a1"), '{"type":"assis');
    await mkdir(join(folder, session, "subagents/agent-folder.jsonl"), { recursive: true });
    const { agents, notes } = await load();
    expect(agents[0]?.totals.turns).toBe(1);
    expect(notes).toEqual([
      expect.stringContaining("agent-folder.jsonl"),
      "main: 1 lines of its transcript cannot be read and are left out.",
      "main: the last line of its transcript was cut off.",
    ]);
  });

  test("a whole last line without its end counts once no process writes any more, and only once", async () => {
    const file = await write(`${session}.jsonl`, user("u1", "Go."), JSON.stringify(answer("a1")));
    const taken = takeOwnerLock(file);
    const reading = source();
    expect((await reading.load()).totals.turns).toBe(0);
    if (taken.type === "taken") taken.lock.release();
    expect((await reading.load()).totals.turns).toBe(1);
    await appendFile(file, `\n${JSON.stringify(answer("a2"))}\n`);
    expect((await reading.load()).totals.turns).toBe(2);
  });

  test("a live session is running, and reading it again takes what was added and new children", async () => {
    const file = await write(`${session}.jsonl`, user("u1", "Go."));
    const taken = takeOwnerLock(file);
    const reading = source();
    expect((await reading.load()).agents[0]).toMatchObject({ state: "running", isLive: true });
    await appendFile(file, `${JSON.stringify(answer("a1"))}\n`);
    await write(`${session}/subagents/agent-abc.jsonl`, answer("b1"));
    const second = await reading.load();
    expect(second.totals).toMatchObject({ turns: 2, costUsd: 2 });
    if (taken.type === "taken") taken.lock.release();
    expect((await reading.load()).agents[0]).toMatchObject({ state: "interrupted", isLive: false });
  });

  test("a line longer than a piece is read", async () => {
    const long = "x".repeat(9 * 1024 * 1024);
    await write(`${session}.jsonl`, user("u1", long), answer("a1"), user("u2", long), answer("a2"));
    expect((await load()).totals.turns).toBe(2);
  });
});

describe("[CLI-3] what is meant is found by id, beginning, name or title", () => {
  beforeEach(async () => {
    await write(`${session}.jsonl`, user("u1", "Review the code"), answer("a1"));
    await write(`${other}.jsonl`, user("u2", "Other work"), answer("a2"));
    await write(`${session}/subagents/agent-a0123.jsonl`, answer("b1"));
    await write(`${session}/subagents/agent-a0123.meta.json`, '{"agentType":"Explore","name":"scout"}');
    await write(`${other}/subagents/agent-a0199.jsonl`, answer("b2"));
  });
  const agent = { sessionId: session, agentId: "a0123" };

  test.each([
    [session, { sessionId: session }],
    ["3f0b1", { sessionId: session }],
    ["a012", agent],
    ["a0123", agent],
    ["scout", agent],
    ["other WORK", { sessionId: other }],
  ])("%s", async (written, inspected) => {
    expect(await findInspected(folder, written)).toEqual({ type: "found", inspected });
  });

  test("what several begin with is ambiguous, and names them all", async () => {
    expect(await findInspected(folder, "3f0b")).toEqual({ type: "ambiguous", ids: [session, other] });
    expect(await findInspected(folder, "a01")).toMatchObject({
      ids: expect.arrayContaining(["a0123", "a0199"]),
    });
  });

  test("nothing is found with a path, an unknown title, or in an empty folder", async () => {
    expect(await findInspected(folder, "../../x")).toMatchObject({ type: "missing" });
    expect(await findInspected(folder, "Reviw the code")).toEqual({
      type: "missing",
      nearest: "Review the code",
    });
    expect(await findInspected(join(folder, "nowhere"))).toEqual({ type: "missing" });
  });
});
