import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { noUsage } from "@retinue/core/conversation/usage.ts";
import { createInspectionSource } from "@retinue/core/inspection/inspection-source.ts";
import { sessionFiles } from "@retinue/core/journal/session-files.ts";
import { openInboxFiles } from "@retinue/core/kernel/approvals/inbox-files.ts";
import { createLiveText, type LivePiece, liveFiles } from "@retinue/core/kernel/live/live-text.ts";
import type { AgentUpdate, SessionUpdate } from "@retinue/core/kernel/live/session-update.ts";
import { createTaskManager, type TaskManager } from "@retinue/core/tasks/task-manager.ts";
import { controlFiles, watchControl, watchMain } from "@retinue/core/tasks/watch-control.ts";
import { type ApprovalQuestion, digestOf } from "@retinue/gate/grants/approval-record.ts";
import { createParser } from "eventsource-parser";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Studio, startStudio } from "./start-studio.ts";
import { studioKeys } from "./studio-keys.ts";

const token = "0123456789abcdef0123";
const project = "-work-shop";
const session = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const timestamp = "2026-10-01T10:00:00.000Z";
let root = "";
let transcripts = "";
let studio: Studio;

const line = (value: object): string => `${JSON.stringify(value)}\n`;
const prompt = (uuid: string, text: string) =>
  line({ type: "user", uuid, timestamp, message: { role: "user", content: text } });
const answer = (uuid: string, content: readonly object[]) =>
  line({
    type: "assistant",
    uuid,
    timestamp,
    costUSD: 0.5,
    durationMs: 10,
    message: { id: uuid, model: "m", content },
  });
const said = (uuid: string, text: string) => answer(uuid, [{ type: "text", text }]);

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "retinue-studio-"));
  transcripts = join(root, project);
  mkdirSync(transcripts);
  mkdirSync(join(root, "-work-other"));
  writeFileSync(
    join(transcripts, `${session}.jsonl`),
    prompt("u1", "Count the shelves.") + said("a1", "Four."),
  );
  studio = await startStudio({
    scope: { projects: root, project },
    host: "127.0.0.1",
    port: 0,
    token,
    acting: {
      user: "ada",
      // Stands for the command: what it is called with is what is tested.
      program: {
        file: process.execPath,
        arguments: ["-e", "console.error(process.argv.slice(1).join(' ')); process.exit(3)", "--"],
      },
      environment: { PATH: process.env["PATH"] },
      cwd: root,
    },
    log: () => undefined,
  });
});
afterAll(async () => {
  await studio.close();
  rmSync(root, { recursive: true, force: true });
});

interface Answered {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** With headers as they are given: `fetch` does not let anybody choose Host. */
function ask(path: string, headers: Readonly<Record<string, string>> = {}, body?: string): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      new URL(path, studio.origin),
      { method: body === undefined ? "GET" : "POST", headers },
      (response) => {
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () =>
          resolve({ status: response.statusCode, headers: response.headers, body: text }),
        );
      },
    );
    outgoing.on("error", reject).end(body);
  });
}

/** Reads events until one satisfies. */
async function follow<T>(path: string, isEnough: (update: T) => boolean): Promise<T> {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const response = await fetch(`${studio.origin}${path}`, {
    headers: { authorization: `Bearer ${token}` },
    signal: stop.signal,
  });
  const found = Promise.withResolvers<T>();
  const parser = createParser({
    onEvent: ({ data }) => {
      const update: T = JSON.parse(data);
      if (isEnough(update)) found.resolve(update);
    },
  });
  void (async () => {
    for await (const chunk of response.body ?? []) parser.feed(Buffer.from(chunk).toString("utf8"));
  })().catch(() => undefined);
  return found.promise;
}

const about = `project=${project}&id=${session}`;
const page = (): string => studioKeys(token).path;
const cookie = (): string => `retinue-studio-${new URL(studio.origin).port}=${studioKeys(token).cookie}`;
const authorization = `Bearer ${token}`;

describe("who is served", () => {
  test.each([
    ["/", {}, 401],
    [`/?token=${token}`, {}, 303],
    ["/?open=guessed", {}, 401],
    ["/page", {}, 401],
    [`/api/inspection?${about}&token=${token}`, {}, 401],
    [`/api/inspection?${about}`, { cookie: () => cookie() }, 200],
    [`/api/inspection?${about}`, { cookie: () => `other=1; ${cookie()}` }, 200],
    [`/api/inspection?${about}`, { cookie: () => cookie().replace(/.$/, "_") }, 401],
    [`/api/inspection?${about}`, { cookie: () => cookie(), "sec-fetch-site": "same-origin" }, 200],
    [`/api/inspection?${about}`, { cookie: () => cookie(), "sec-fetch-site": "same-site" }, 403],
    [`/api/inspection?${about}`, { cookie: () => cookie(), "sec-fetch-site": "cross-site" }, 403],
    [`/api/inspection?${about}`, { authorization, "sec-fetch-site": "cross-site" }, 200],
    ["/?token=wrong", {}, 401],
    ["/api/sessions", {}, 401],
    [`/api/session?${about}`, {}, 401],
    [`/api/agent?${about}`, { authorization: "Bearer 0123456789abcdef012" }, 401],
    [`/api/inspection?${about}`, {}, 401],
    [`/api/inspection?${about}`, { authorization }, 200],
    [`/api/inspection?${about}`, { authorization, host: "evil.test" }, 403],
    [`/api/inspection?${about}`, { authorization, host: "127.0.0.1" }, 403],
    [`/api/inspection?${about}`, { authorization, origin: "http://evil.test" }, 403],
    [`/api/inspection?${about}`, { authorization, origin: "null" }, 403],
    ["/page.js", { host: "evil.test" }, 403],
    ["/page.js", {}, 200],
    [`/api/inspection?project=-work-other&id=${session}`, { authorization }, 400],
    [`/api/inspection?project=..&id=${session}`, { authorization }, 400],
    [`/api/inspection?project=${project}&id=..%2F..%2Fetc`, { authorization }, 400],
    [`/api/agent?${about}&agent=..%2Fx`, { authorization }, 400],
    ["/etc/passwd", { authorization }, 404],
  ] as const)("%s with %j gets %i [STU-1]", async (path, headers, status) => {
    const given = Object.entries(headers).map(([name, value]) => [
      name,
      typeof value === "string" ? value : value(),
    ]);
    expect((await ask(path, Object.fromEntries(given))).status).toBe(status);
  });

  test("the token of the link becomes a cookie below a path of its own, and is in no address [STU-1]", async () => {
    const { status, headers, body } = await ask(`/?token=${token}`);
    const location = String(headers["location"]);
    expect([status, body]).toEqual([303, ""]);
    expect(location).toMatch(/^\/[\w-]{16}\/$/);
    const [given = ""] = headers["set-cookie"] as readonly string[];
    expect(given).toMatch(
      new RegExp(`^retinue-studio-\\d+=[\\w-]{43}; Path=${location}; HttpOnly; SameSite=Strict$`),
    );
    expect(`${given}${location}`).not.toContain(token);
    expect((await ask(location)).body).toContain("page.js");
    expect((await ask(`${location}api/inspection?${about}`)).status).toBe(401);
    expect((await ask(`${location}api/inspection?${about}`, { cookie: cookie() })).status).toBe(200);
  });

  test("the link that a browser is started with works once and does not hold the token [STU-1]", async () => {
    const path = studio.createOpenLink().slice(studio.origin.length);
    expect(path).not.toContain(token);
    expect((await ask(path)).status).toBe(303);
    expect((await ask(path)).status).toBe(401);
  });

  test("every answer has a policy without inline script, and none is shared with other origins [STU-1]", async () => {
    for (const path of [
      "/",
      "/page.js",
      page(),
      `/?token=${token}`,
      `/api/inspection?${about}&token=${token}`,
    ]) {
      const { headers } = await ask(path);
      const policy = String(headers["content-security-policy"]);
      expect(policy).toContain("default-src 'none'; script-src 'self'");
      expect(policy).not.toContain("unsafe");
      expect(headers["access-control-allow-origin"]).toBeUndefined();
    }
  });

  test("the page names nothing of another place and has no script of its own [STU-1]", async () => {
    const { body } = await ask(page());
    expect([...body.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, to]) => to)).toEqual([
      "page.css",
      "page.js",
    ]);
    expect(body).toMatch(/<script src="page.js" defer><\/script>/);
  });
});

describe("what is shown", () => {
  test("the inspection is the one of `retinue inspect --json` [STU-1]", async () => {
    const { body } = await ask(`/api/inspection?${about}`, { authorization });
    const own = await createInspectionSource({ transcripts, sessionId: session, now: () => 0 }).load();
    expect({ ...JSON.parse(body), takenAt: 0 }).toEqual(JSON.parse(JSON.stringify(own)));
  });

  test("the list has the sessions of the folder with their costs [STU-1]", async () => {
    const { list } = await follow<SessionUpdate>(
      "/api/sessions",
      (update) => update.list?.sessions[0]?.figures !== undefined,
    );
    expect(list).toMatchObject({
      scope: "folder",
      sessions: [
        {
          id: session,
          title: "Count the shelves.",
          isLive: false,
          figures: { cost: 0.5, agents: 1, calls: 0, now: "Four." },
        },
      ],
    });
  });

  test("what is added to the files is sent without being asked for, and only what changed [STU-1]", async () => {
    const id = "4f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const files = sessionFiles(transcripts, id);
    writeFileSync(files.transcript, prompt("u1", "Go.") + said("a1", "One."));
    mkdirSync(files.subagents, { recursive: true });
    writeFileSync(files.agent("afirst").transcript, prompt("f1", "Look.") + said("f2", "Seen."));
    const isFirst = Promise.withResolvers<void>();
    const later = follow<SessionUpdate>(`/api/session?project=${project}&id=${id}`, ({ session: seen }) => {
      if (seen !== undefined) isFirst.resolve();
      return seen?.agents.some((agent) => agent.id === "achild") === true;
    });
    await isFirst.promise;
    writeFileSync(files.agent("achild").meta, line({ agentType: "Explore", description: "Look around" }));
    writeFileSync(files.agent("achild").transcript, prompt("c1", "Look.") + said("c2", "Seen."));
    const { session: update } = await later;
    expect(update?.agents.find((agent) => agent.id === "achild")).toMatchObject({
      description: "Look around",
      result: "Seen.",
    });
    expect(update?.totals.costUsd).toBe(1.5);
    expect(update?.agents.map((agent) => agent.id)).not.toContain("afirst");
  });

  test("what a model is writing in another process is sent piece by piece, and only while somebody looks [STU-1]", async () => {
    const id = "af0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const files = sessionFiles(transcripts, id);
    writeFileSync(files.transcript, prompt("u1", "Go."));
    const taken = takeOwnerLock(files.transcript);
    onTestFinished(() => (taken.type === "taken" ? taken.lock.release() : undefined));
    const live = createLiveText(liveFiles(files));
    onTestFinished(() => live.close());
    const delta = (text: string) =>
      live.onEvent("main", { type: "model-streamed", event: { type: "text-delta", index: 0, text } });
    delta("Once ");
    expect(existsSync(liveFiles(files).directory)).toBe(false);
    const pieces: LivePiece[] = [];
    const ended = follow<SessionUpdate>(`/api/session?project=${project}&id=${id}`, ({ live: seen = [] }) => {
      pieces.push(...seen);
      return seen.some(({ text }) => text === undefined);
    });
    await expect.poll(() => pieces.length).toBeGreaterThan(0);
    delta("upon");
    delta(" a time");
    live.onEvent("main", { type: "answer-lost", model: "m", usage: noUsage });
    await ended;
    expect(pieces.map(({ text = "." }) => text).join("")).toBe("Once upon a time.");
    expect(pieces.every(({ agentId, answer: id }) => agentId === "main" && id === "answer-1")).toBe(true);
    live.close();
    expect(existsSync(liveFiles(files).directory)).toBe(false);
  });

  test("a conversation has calls with results and edits, and the plan [STU-1]", async () => {
    const id = "5f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const file = sessionFiles(transcripts, id).transcript;
    const input = { file_path: "/a.ts", old_string: "a\n", new_string: "b\n" };
    writeFileSync(
      file,
      prompt("u1", "Edit.") +
        line({ type: "retinue-plan", timestamp, plan: { model: { value: "m", from: "the call" } } }) +
        answer("a1", [{ type: "tool_use", id: "t1", name: "Edit", input }]),
    );
    const path = `/api/agent?project=${project}&id=${id}&agent=main`;
    const isFirst = Promise.withResolvers<AgentUpdate>();
    const settled = follow<SessionUpdate>(path, ({ agent }) => {
      if (agent === undefined) return false;
      isFirst.resolve(agent);
      return agent.entries.some(([, entry]) => entry.type === "call" && entry.outcome === "refused");
    });
    expect(await isFirst.promise).toMatchObject({
      plan: { model: { value: "m", from: "the call" } },
      entries: [
        [0, { type: "prompt", text: "Edit." }],
        [1, { type: "turn", model: "m", costUsd: 0.5 }],
        [2, { type: "call", outcome: "running", edits: [{ file: "/a.ts" }] }],
      ],
    });
    const content = [{ type: "tool_result", tool_use_id: "t1", content: "no", is_error: true }];
    const toolCall = { durationMs: 0, denied: "a rule denies it" };
    appendFileSync(
      file,
      line({ type: "user", uuid: "u2", timestamp, toolCall, message: { role: "user", content } }),
    );
    expect((await settled).agent?.entries).toMatchObject([
      [2, { outcome: "refused", reason: "a rule denies it" }],
    ]);
  });
});

function question(sessionId: string, id: string): ApprovalQuestion {
  const call = { tool: "Bash", input: { command: "make" }, directory: root, paths: [] };
  return {
    ...call,
    version: 1,
    id,
    session: sessionId,
    digest: digestOf(call),
    reason: "no allow rule matches",
    suggestedRules: ["Bash(make)"],
    everyTime: false,
    places: ["a1", "a2"].map((agent) => ({ agent, path: `main > ${agent}`, call: `c-${agent}`, at: 1 })),
    at: 1,
  };
}

/** A child that runs as if in another process: its lock is held, and its manager watches the folder of requests. */
function runChild(
  id: string,
  background = true,
): { readonly tasks: TaskManager; readonly read: Promise<string> } {
  const files = sessionFiles(transcripts, session);
  mkdirSync(files.subagents, { recursive: true });
  writeFileSync(files.agent(id).meta, line({ agentType: "Explore", description: "Look" }));
  writeFileSync(files.agent(id).transcript, prompt(`${id}-1`, "Look."));
  const taken = takeOwnerLock(files.agent(id).transcript);
  const release = (): void => (taken.type === "taken" ? taken.lock.release() : undefined);
  const tasks = watchControl(createTaskManager({ maxRunning: 10, now: () => 0 }), controlFiles(files));
  const read = Promise.withResolvers<string>();
  tasks.start({
    start: { id, agentType: "x", description: "x", background, parentId: "main" },
    onEnd: release,
    async *events(control, signal): AsyncGenerator<RunEvent> {
      yield { type: "turn-started", turn: 1 };
      while (!signal.aborted) {
        const [message] = control.takeMessages();
        if (message !== undefined) read.resolve(JSON.stringify(message.content));
        await new Promise((resolve) => setImmediate(resolve));
      }
      throw signal.reason;
    },
  });
  onTestFinished(() => tasks[Symbol.asyncDispose]());
  return { tasks, read: read.promise };
}

function act(body: object): Promise<Answered> {
  const whole = { project, sessionId: session, ...body };
  return ask("/api/act", { authorization, "content-type": "application/json" }, JSON.stringify(whole));
}

const actsOf = (): readonly Record<string, unknown>[] =>
  readFileSync(join(transcripts, session, "acts.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text));

describe("what is done", () => {
  test("a message reaches a running child and is journaled with who sent it [STU-2]", async () => {
    const { read } = runChild("amessage");
    const { status } = await act({ agentId: "amessage", action: "message", text: "Look left too." });
    expect(status).toBe(200);
    expect(await read).toContain("Look left too.");
    expect(actsOf().filter(({ agentId }) => agentId === "amessage")).toMatchObject([
      {
        type: "retinue-act",
        action: "message",
        text: "Look left too.",
        state: "requested",
        by: { user: "ada", through: "studio" },
      },
      { action: "message", state: "done" },
    ]);
  });

  test("a running child is stopped as by `retinue stop` [STU-2]", async () => {
    const { tasks } = runChild("astop");
    expect((await act({ agentId: "astop", action: "stop" })).status).toBe(200);
    expect(tasks.get("astop")).toMatchObject({ status: "stopped", ending: { reason: "stopped-by-user" } });
    expect(actsOf().filter(({ agentId }) => agentId === "astop")).toMatchObject([
      { state: "requested" },
      { state: "done" },
    ]);
  });

  test("a session is resumed by the command itself, and what it reports is in the journal [STU-2]", async () => {
    const failed = follow<SessionUpdate>(
      `/api/session?${about}`,
      ({ session: seen }) =>
        seen?.acts?.some(({ state, action }) => action === "resume" && state === "failed") === true,
    );
    expect((await act({ agentId: "main", action: "resume", text: "--go on" })).status).toBe(200);
    // Looking at a session that has ended writes nothing into its folder.
    expect(existsSync(liveFiles(sessionFiles(transcripts, session)).directory)).toBe(false);
    expect((await failed).session?.acts).toContainEqual(
      expect.objectContaining({
        state: "failed",
        reason: `-p --resume ${session} -- --go on`,
        by: "ada through studio",
      }),
    );
  });

  test("a running child is moved to the background [STU-2]", async () => {
    const { tasks } = runChild("abackground", false);
    const waiting = tasks.wait("abackground", { signal: new AbortController().signal });
    expect((await act({ agentId: "abackground", action: "background" })).status).toBe(200);
    expect(await waiting).toMatchObject({ background: true, status: "running" });
    expect(actsOf().filter(({ agentId }) => agentId === "abackground")).toMatchObject([
      { action: "background", state: "requested", by: { user: "ada" } },
      { action: "background", state: "done" },
    ]);
  });

  test("the main agent of another process is written to and stopped while it works [STU-2]", async () => {
    const id = "7f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const files = sessionFiles(transcripts, id);
    writeFileSync(files.transcript, prompt("u1", "Go."));
    const taken = takeOwnerLock(files.transcript);
    onTestFinished(() => (taken.type === "taken" ? taken.lock.release() : undefined));
    const main = watchMain(controlFiles(files));
    using control = main.begin();
    const about = { sessionId: id, agentId: "main" };
    expect((await act({ ...about, action: "message", text: "Left too." })).status).toBe(200);
    expect(JSON.stringify(main.takeMessages())).toContain("Left too.");
    expect((await act({ ...about, action: "stop" })).status).toBe(200);
    expect(control.signal.reason).toMatchObject({ code: "stopped-by-user" });
  });

  test("a conversation is forked before a prompt or after an answer, and both sessions say by whom [STU-2]", async () => {
    const id = "8f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const files = sessionFiles(transcripts, id);
    const use = { type: "tool_use", id: "t1", name: "Read", input: {} };
    const content = [{ type: "tool_result", tool_use_id: "t1", content: "ok" }];
    writeFileSync(
      files.transcript,
      prompt("u1", "One.") +
        answer("a1", [use]) +
        line({ type: "user", uuid: "u2", timestamp, message: { role: "user", content } }) +
        prompt("u3", "Two.") +
        said("a3", "Done."),
    );
    const textsOf = async (message: string): Promise<readonly unknown[]> => {
      const done = await act({ sessionId: id, agentId: "main", action: "fork", message });
      const { sessionId } = JSON.parse(done.body);
      const forked = readFileSync(join(transcripts, `${sessionId}.jsonl`), "utf8")
        .trim()
        .split("\n");
      expect(readFileSync(join(transcripts, sessionId, "acts.jsonl"), "utf8")).toContain("ada");
      return forked.map((text) => JSON.parse(text).forkedFrom?.messageUuid).filter(Boolean);
    };
    expect(await textsOf("u3")).toEqual(["u1", "a1", "u2"]);
    expect(await textsOf("a1")).toEqual(["u1", "a1", "u2"]);
    expect(await textsOf("a3")).toEqual(["u1", "a1", "u2", "u3", "a3"]);
    expect(readFileSync(join(transcripts, id, "acts.jsonl"), "utf8")).toMatch(/"fork".*"done"/);
  });

  test("a question is shown, answered with a scope and revoked, and the journal says by whom [STU-2]", async () => {
    const id = "9f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const files = sessionFiles(transcripts, id);
    writeFileSync(files.transcript, prompt("u1", "Go."));
    const inbox = openInboxFiles(files.approvals);
    const asked = question(id, "0123456789ab");
    inbox.putQuestion(asked);
    const path = `/api/session?project=${project}&id=${id}`;
    const { inbox: asking } = await follow<SessionUpdate>(
      "/api/sessions",
      (update) => update.inbox?.some(({ sessionId }) => sessionId === id) === true,
    );
    expect(asking).toMatchObject([
      { id: "0123456789ab", project, sessionId: id, title: "Go.", command: "make", directory: root },
    ]);
    const shown = await follow<SessionUpdate>(path, ({ session: seen }) => seen?.questions !== undefined);
    expect(shown.session?.questions).toMatchObject([
      { id: "0123456789ab", state: "waiting", tool: "Bash", places: [{ agent: "a1" }, { agent: "a2" }] },
    ]);
    const about = { sessionId: id, agentId: "main", question: "0123456789ab" };
    const grant = { scope: "session", maxUses: 3 };
    expect((await act({ ...about, action: "approve", digest: "other", grant })).status).toBe(409);
    expect((await act({ ...about, action: "approve", digest: asked.digest, grant })).status).toBe(200);
    expect(inbox.read()[0]?.answer).toMatchObject({ type: "allow", by: "ada", via: "studio", maxUses: 3 });
    expect((await act({ ...about, action: "revoke" })).status).toBe(200);
    expect(inbox.read()[0]?.revoked).toMatchObject({ by: "ada" });
  });

  test.each([
    [{ agentId: "main", action: "stop" }, 409, /main agent is not running/],
    [{ agentId: "main", action: "background" }, 400, /cannot be moved to the background/],
    [{ agentId: "main", action: "fork", message: "no" }, 409, /no message/],
    [{ agentId: "main", action: "approve", question: "no", digest: "x" }, 409, /no question/],
    [{ agentId: "main", action: "approve", grant: { scope: "world" } }, 400, /scope of a grant/],
    [{ agentId: "main", action: "resume", text: " " }, 400, /needs a prompt/],
    [{ agentId: "anobody", action: "stop" }, 409, /no agent anobody/],
    [{ agentId: "../x", action: "stop" }, 400, /agentId/],
    [{ agentId: "main", action: "explode" }, 400, /one of message, stop, background, resume, fork/],
    [{ agentId: "main", action: "stop", project: "-work-other" }, 400, /no project/],
    [{ agentId: "main", action: "stop", sessionId: "x" }, 400, /not a session id/],
  ])("%j is refused with %i [STU-2]", async (body, status, message) => {
    const answered = await act(body);
    expect(answered.status).toBe(status);
    expect(JSON.parse(answered.body).message).toMatch(message);
  });

  test("no form of another page can act, nor one without the token [STU-2]", async () => {
    const body = JSON.stringify({ project, sessionId: session, agentId: "main", action: "stop" });
    const json = { "content-type": "application/json" };
    expect((await ask("/api/act", { authorization }, body)).status).toBe(400);
    expect((await ask("/api/act", json, body)).status).toBe(401);
    expect((await ask("/api/act", { ...json, authorization, origin: "http://evil.test" }, body)).status).toBe(
      403,
    );
  });
});
