// @io
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type OwnerLock, takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { type Act, appendAct } from "@retinue/core/journal/append-act.ts";
import { isSessionId, sessionFiles } from "@retinue/core/journal/session-files.ts";
import { openInboxFiles } from "@retinue/core/kernel/approvals/inbox-files.ts";
import { createLiveText, type LiveText, liveFiles } from "@retinue/core/kernel/live/live-text.ts";
import type { ActOutcome, ActRequest } from "@retinue/core/kernel/live/session-update.ts";
import type { ApprovalAnswer } from "@retinue/gate/approver.ts";
import { digestOf } from "@retinue/gate/grants/approval-record.ts";
import { agentLog, toAgentRecord } from "../agent-records.ts";
import { describeDeadLetter, sendMessage, stopAgent, watchAgent } from "../start-agent.ts";
import type { JsonValue, LogEntry, Store, Subscription } from "../store.ts";
import { type Question, readSessionEntry } from "./session-progress.ts";
import { answerQuestion, toApprovals } from "./store-approvals.ts";

/**
 * The sessions of a store as files of a temporary folder, kept up to date, so that everything that reads sessions works on them. The
 * store reports changes; only new agents are looked for from time to time.
 */
export interface StoreMirror extends AsyncDisposable {
  readonly projects: string;
  readonly project: string;
  /** Does through the store what the page asks for, and writes to the store who did it. */
  act(request: ActRequest, user: string): Promise<ActOutcome>;
}

interface MirroredAgent {
  readonly id: string;
  /** The session that it is shown in: its own, or for a child that of the root of its tree. */
  session: string;
  /** `main`, or the id of a child inside the session. */
  agentId: string;
  seq: number;
  isRunning: boolean;
  readonly locks: Map<string, OwnerLock>;
  readonly questions: Map<string, Question>;
  readonly subscriptions: Subscription[];
  /** Updates of one agent come one after the other. */
  turn: Promise<void>;
}

const project = "store";
const discoverMs = 1500;
const actsLog = (session: string): string => `acts/${session}`;

export async function mirrorStore(store: Store, onError: (error: unknown) => void): Promise<StoreMirror> {
  const projects = mkdtempSync(join(tmpdir(), "retinue-studio-store-"));
  const transcripts = join(projects, project);
  mkdirSync(transcripts, { mode: 0o700 });
  const mirror: Mirror = { store, transcripts, agents: new Map(), acts: new Map(), live: new Map(), onError };
  await discover(mirror);
  let looking = Promise.resolve();
  const timer = setInterval(() => {
    looking = looking.then(() => discover(mirror)).catch(onError);
  }, discoverMs).unref();
  return {
    projects,
    project,
    act: (request, user) => actInStore(mirror, request, user),
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await looking;
      for (const agent of mirror.agents.values()) {
        for (const subscription of agent.subscriptions) subscription.close();
        await agent.turn;
        release(agent);
      }
      for (const text of mirror.live.values()) text.close();
      rmSync(projects, { recursive: true, force: true });
    },
  };
}

interface Mirror {
  readonly store: Store;
  readonly transcripts: string;
  readonly agents: Map<string, MirroredAgent>;
  /** By session, how many of its acts are here. */
  readonly acts: Map<string, number>;
  readonly live: Map<string, LiveText>;
  readonly onError: (error: unknown) => void;
}

async function discover(mirror: Mirror): Promise<void> {
  const prefix = agentLog("");
  for (const { name, lastSeq } of await mirror.store.log.list(prefix)) {
    const id = name.slice(prefix.length);
    if (!isSessionId(id)) continue;
    const known = mirror.agents.get(id) ?? (await addAgent(mirror, id));
    if (known.seq < lastSeq) await update(mirror, known);
  }
  for (const { name, lastSeq } of await mirror.store.log.list(actsLog(""))) {
    const session = name.slice(actsLog("").length);
    const seen = mirror.acts.get(session) ?? 0;
    if (lastSeq > seen && isSessionId(session)) await copyActs(mirror, session, seen);
  }
}

async function addAgent(mirror: Mirror, id: string): Promise<MirroredAgent> {
  const agent: MirroredAgent = {
    id,
    session: id,
    agentId: "main",
    seq: 0,
    isRunning: false,
    locks: new Map(),
    questions: new Map(),
    subscriptions: [],
    turn: Promise.resolve(),
  };
  mirror.agents.set(id, agent);
  const { store, onError } = mirror;
  agent.subscriptions.push(
    await store.bus.subscribe(agentLog(id), () => void update(mirror, agent).catch(onError)),
    await watchAgent(store, id, (event) => onEvent(mirror, agent, event)),
  );
  return agent;
}

function update(mirror: Mirror, agent: MirroredAgent): Promise<void> {
  const next = agent.turn.then(async () => {
    for (const entry of await mirror.store.log.read(agentLog(agent.id), agent.seq))
      take(mirror, agent, entry);
    // What runs in the store counts here as running as long as this process holds its files.
    const { transcripts } = mirror;
    if (!agent.isRunning) {
      release(agent);
      return;
    }
    if (agent.agentId === "main") {
      const { transcript } = sessionFiles(transcripts, agent.session);
      if (!agent.locks.has(transcript)) agent.locks.set(transcript, noLock);
    }
    for (const [file, lock] of agent.locks) {
      if (lock !== noLock) continue;
      const taken = takeOwnerLock(file);
      if (taken.type === "taken") agent.locks.set(file, taken.lock);
    }
  });
  agent.turn = next.catch(() => undefined);
  return next;
}

function take(mirror: Mirror, agent: MirroredAgent, { seq, at, record: value }: LogEntry): void {
  agent.seq = seq;
  const record = toAgentRecord(value);
  switch (record?.type) {
    case "planned": {
      const plan = isRecord(record.plan) ? record.plan : {};
      if (plan["type"] === "plan" && isSessionId(record.tree)) agent.session = record.tree;
      agent.agentId = plan["type"] === "plan" ? childIdOf(plan["plan"]) : "main";
      return;
    }
    case "claimed":
      agent.isRunning = true;
      return;
    case "parked":
    case "ended":
    case "released":
      agent.isRunning = false;
      return;
    case "dead-letter":
      agent.isRunning = false;
      noteDeadLetter(mirror, agent, { text: describeDeadLetter(record), at });
      return;
    case "entry":
      takeEntry(mirror, agent, { entry: record.entry, at });
      return;
    default:
  }
}

/** The page shows acts; this one is of the workers, and a prompt takes it back. */
function noteDeadLetter(
  { transcripts }: Mirror,
  { session, agentId }: MirroredAgent,
  { text, at }: { readonly text: string; readonly at: number },
): void {
  const by = { user: "the workers", through: "store", pid: 0 };
  const act: Act = { action: "dead-letter", agentId, state: "failed", reason: text, by };
  appendAct(sessionFiles(transcripts, session), act, at);
}

function childIdOf(plan: unknown): string {
  const own = isRecord(plan) && isRecord(plan["agent"]) ? plan["agent"]["id"] : undefined;
  return typeof own === "string" ? own : "child";
}

function takeEntry(
  mirror: Mirror,
  agent: MirroredAgent,
  { entry, at }: { readonly entry: JsonValue; readonly at: number },
): void {
  if (isRecord(entry) && entry["type"] === "file") {
    writePiece(mirror, agent, entry);
    return;
  }
  const read = readSessionEntry(entry);
  const inbox = openInboxFiles(sessionFiles(mirror.transcripts, agent.session).approvals);
  if (read?.type === "asked") {
    const { tool, reason, path, id } = read.question;
    const input = isRecord(read.question.input) ? read.question.input : {};
    const call = { tool, input, directory: "", paths: [] };
    const short = id.slice(0, 12);
    agent.questions.set(short, read.question);
    inbox.putQuestion({
      ...call,
      version: 1,
      id: short,
      session: agent.session,
      digest: digestOf(call),
      reason,
      suggestedRules: [],
      everyTime: false,
      places: [{ agent: agent.agentId, path: path.join(" → "), call: id, at }],
      at,
    });
  } else if (read?.type === "used" || read?.type === "run-ended") {
    for (const id of agent.questions.keys()) inbox.remove(id);
    agent.questions.clear();
  }
}

/** A piece of a file, as the worker has written it; one of a child goes to the files of the root of its tree. */
function writePiece(
  { transcripts }: Mirror,
  agent: MirroredAgent,
  piece: Readonly<Record<string, unknown>>,
): void {
  const { path, from, text } = piece;
  if (typeof path !== "string" || typeof text !== "string") return;
  const rest = path.startsWith(agent.id) ? path.slice(agent.id.length) : "";
  if (!/^(\.jsonl|\/(subagents|tool-results)\/(?!\.)[^/\\\0]+)$/.test(rest)) return;
  const file = join(transcripts, `${agent.session}${rest}`);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  if (typeof from === "number" && from > 0) appendFileSync(file, text, { mode: 0o600 });
  else writeFileSync(file, text, { mode: 0o600 });
  if (!file.endsWith(".jsonl")) return;
  // Children that have not written their end run as long as the agent does.
  if (text.includes('"runEnding"')) releaseFile(agent, file);
  else if (!agent.locks.has(file)) agent.locks.set(file, noLock);
}

const noLock: OwnerLock = {
  lockFile: "",
  isHeld: () => false,
  setIdle: () => undefined,
  release: () => undefined,
};

function release(agent: MirroredAgent): void {
  for (const file of [...agent.locks.keys()]) releaseFile(agent, file);
}

function releaseFile(agent: MirroredAgent, file: string): void {
  agent.locks.get(file)?.release();
  agent.locks.delete(file);
}

function onEvent({ transcripts, live }: Mirror, { session, agentId }: MirroredAgent, event: JsonValue): void {
  if (!isRecord(event) || typeof event["type"] !== "string") return;
  const text = live.get(session) ?? createLiveText(liveFiles(sessionFiles(transcripts, session)));
  live.set(session, text);
  // Published by a worker from its own events; only the fields of streamed text are read.
  text.onEvent(agentId, event as unknown as RunEvent);
}

async function copyActs({ store, transcripts, acts }: Mirror, session: string, from: number): Promise<void> {
  for (const { seq, at, record } of await store.log.read(actsLog(session), from)) {
    acts.set(session, seq);
    // Written by a studio; readers of the file check every field.
    if (isRecord(record)) appendAct(sessionFiles(transcripts, session), record as unknown as Act, at);
  }
}

async function actInStore(mirror: Mirror, request: ActRequest, user: string): Promise<ActOutcome> {
  const { action, agentId, sessionId, text, question } = request;
  const agent = [...mirror.agents.values()].find(
    (known) => known.session === sessionId && known.agentId === agentId,
  );
  const note = async (state: Act["state"], reason?: string): Promise<void> => {
    const about = [question, text].filter((part) => part !== undefined).join(": ");
    const act = {
      action,
      agentId,
      ...(about === "" ? {} : { text: about }),
      state,
      ...(reason === undefined ? {} : { reason }),
      by: { user, through: "studio", pid: process.pid },
    };
    await mirror.store.log.append(actsLog(sessionId), [act]);
    await copyActs(mirror, sessionId, mirror.acts.get(sessionId) ?? 0);
  };
  if (agent === undefined)
    throw new RetinueError("unknown-task", `${agentId} is not an agent of the store itself.`, {
      advice: "Act on its session, or on children that run as agents of the store.",
    });
  await note("requested");
  try {
    const outcome = await perform(mirror, agent, request, user);
    await note("done", outcome);
    return { outcome };
  } catch (error) {
    await note("failed", error instanceof Error ? error.message : String(error));
    throw error;
  }
}

async function perform(
  { store }: Mirror,
  agent: MirroredAgent,
  request: ActRequest,
  user: string,
): Promise<string> {
  const { action, text = "" } = request;
  switch (action) {
    case "stop":
      await stopAgent(store, agent.id, { reason: "stopped from the studio" });
      return `${agent.id} was stopped.`;
    case "message":
    case "resume":
      if (text.trim() === "") throw new RetinueError("misuse", "An agent in a store needs a prompt.");
      await sendMessage(store, agent.id, { body: { type: "prompt", prompt: text } });
      return `${agent.id} has the message.`;
    case "approve":
    case "deny":
      return answer(store, agent, request, user);
    default:
      throw new RetinueError("misuse", `${action} is not possible for an agent in a store.`);
  }
}

async function answer(
  store: Store,
  agent: MirroredAgent,
  request: ActRequest,
  user: string,
): Promise<string> {
  const { action, question: id = "", grant, text } = request;
  const question = agent.questions.get(id);
  if (question === undefined) throw new RetinueError("unknown-approval", `There is no question ${id}.`);
  const { scope = "call", rules, until, maxUses, maxUsd } = grant ?? {};
  if (scope === "tree" || [until, maxUses, maxUsd].some((limit) => limit !== undefined))
    throw new RetinueError(
      "misuse",
      "For agents in a store, an answer applies to the call, the agent or the session, and cannot have limits.",
    );
  const allowance: ApprovalAnswer =
    scope === "call" ? { type: "allow", for: scope } : { type: "allow", for: scope, rules };
  const given: ApprovalAnswer = action === "deny" ? { type: "deny", message: text } : allowance;
  const [last] = await store.log.read(agentLog(agent.id), -1);
  const [approval] = toApprovals(agent.id, last);
  if (approval?.question.id !== question.id)
    throw new RetinueError("already-answered", `${question.tool} is not waiting for an answer.`);
  await answerQuestion(store, approval, { answer: given, by: user });
  return `${question.tool} is ${action === "deny" ? "denied" : "allowed"}.`;
}
