import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createParser } from "eventsource-parser";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { RunEvent } from "../../conversation/run-event.ts";
import { createInspectionSource } from "../../inspection/inspection-source.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { takeOwnerLock } from "../../storage/owner-lock.ts";
import { controlFiles } from "../../tasks/control-files.ts";
import { createTaskManager, type TaskManager } from "../../tasks/task-manager.ts";
import { watchControl } from "../../tasks/watch-control.ts";
import type { SessionOverview } from "./session-overview.ts";
import { type Studio, startStudio } from "./start-studio.ts";
import type { AgentUpdate, SessionList } from "./studio-messages.ts";

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
const authorization = `Bearer ${token}`;

describe("who is served", () => {
  test.each([
    ["/", {}, 401],
    [`/?token=${token}`, {}, 200],
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
  ])("%s with %j gets %i [STU-1]", async (path, headers, status) => {
    expect((await ask(path, headers)).status).toBe(status);
  });

  test("every answer has a policy without inline script, and none is shared with other origins [STU-1]", async () => {
    for (const path of ["/", "/page.js", `/?token=${token}`, `/api/inspection?${about}&token=${token}`]) {
      const { headers } = await ask(path);
      const policy = String(headers["content-security-policy"]);
      expect(policy).toContain("default-src 'none'; script-src 'self'");
      expect(policy).not.toContain("unsafe");
      expect(headers["access-control-allow-origin"]).toBeUndefined();
    }
  });

  test("the page names nothing of another place and has no script of its own [STU-1]", async () => {
    const { body } = await ask(`/?token=${token}`);
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
    const list = await follow<SessionList>(
      "/api/sessions",
      ({ sessions }) => sessions[0]?.figures !== undefined,
    );
    expect(list).toMatchObject({
      scope: "folder",
      sessions: [
        { id: session, title: "Count the shelves.", isLive: false, figures: { cost: 0.5, agents: 1 } },
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
    const later = follow<SessionOverview>(`/api/session?project=${project}&id=${id}`, ({ agents }) => {
      isFirst.resolve();
      return agents.some((agent) => agent.id === "achild");
    });
    await isFirst.promise;
    writeFileSync(files.agent("achild").meta, line({ agentType: "Explore", description: "Look around" }));
    writeFileSync(files.agent("achild").transcript, prompt("c1", "Look.") + said("c2", "Seen."));
    const update = await later;
    expect(update.agents.find((agent) => agent.id === "achild")).toMatchObject({
      description: "Look around",
      result: "Seen.",
    });
    expect(update.totals.cost).toBe(1.5);
    expect(update.agents.map((agent) => agent.id)).not.toContain("afirst");
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
    const settled = follow<AgentUpdate>(path, (update) => {
      isFirst.resolve(update);
      return update.entries.some(([, entry]) => entry.type === "call" && entry.outcome === "refused");
    });
    expect(await isFirst.promise).toMatchObject({
      plan: { model: { value: "m", from: "the call" } },
      entries: [
        [0, { type: "prompt", text: "Edit." }],
        [1, { type: "call", outcome: "running", edits: [{ file: "/a.ts" }] }],
      ],
    });
    const content = [{ type: "tool_result", tool_use_id: "t1", content: "no", is_error: true }];
    const toolCall = { durationMs: 0, denied: "a rule denies it" };
    appendFileSync(
      file,
      line({ type: "user", uuid: "u2", timestamp, toolCall, message: { role: "user", content } }),
    );
    expect((await settled).entries).toMatchObject([[1, { outcome: "refused", reason: "a rule denies it" }]]);
  });
});

/** A child that runs as if in another process: its lock is held, and its manager watches the folder of requests. */
function runChild(id: string): { readonly tasks: TaskManager; readonly read: Promise<string> } {
  const files = sessionFiles(transcripts, session);
  mkdirSync(files.subagents, { recursive: true });
  writeFileSync(files.agent(id).meta, line({ agentType: "Explore", description: "Look" }));
  writeFileSync(files.agent(id).transcript, prompt(`${id}-1`, "Look."));
  const taken = takeOwnerLock(files.agent(id).transcript);
  const release = (): void => (taken.type === "taken" ? taken.lock.release() : undefined);
  const tasks = watchControl(createTaskManager({ maxRunning: 10, now: () => 0 }), controlFiles(files));
  const read = Promise.withResolvers<string>();
  tasks.start({
    start: { id, agentType: "x", description: "x", background: true, parentId: "main" },
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
    const failed = follow<SessionOverview>(`/api/session?${about}`, ({ acts = [] }) =>
      acts.some(({ state, action }) => action === "resume" && state === "failed"),
    );
    expect((await act({ agentId: "main", action: "resume", text: "--go on" })).status).toBe(200);
    expect((await failed).acts).toContainEqual(
      expect.objectContaining({
        state: "failed",
        reason: `-p --resume ${session} -- --go on`,
        by: "ada through studio",
      }),
    );
  });

  test.each([
    [{ agentId: "main", action: "stop" }, 409, /main agent of another process/],
    [{ agentId: "main", action: "resume", text: " " }, 400, /needs a prompt/],
    [{ agentId: "anobody", action: "stop" }, 409, /no agent anobody/],
    [{ agentId: "../x", action: "stop" }, 400, /agentId/],
    [{ agentId: "main", action: "explode" }, 400, /one of message, stop, resume/],
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
