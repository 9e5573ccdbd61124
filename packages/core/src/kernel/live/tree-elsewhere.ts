// @io
import { readdir } from "node:fs/promises";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { readNewLines } from "@retinue/base/storage/read-lines.ts";
import { createTreeFold, mainAgentId } from "../../conversation/agent-event.ts";
import { type Message, textOf } from "../../conversation/message.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import { timeOf } from "../../inspection/read-answer.ts";
import { readEarlierPlans } from "../../journal/journaled-plan.ts";
import { isAgentId, type SessionFiles, sessionFiles } from "../../journal/session-files.ts";
import { isShownMessage } from "../../journal/session-title.ts";
import { type AgentEvent, isRunEvent, type WireEvent } from "../../protocol/agent-event.ts";
import {
  type AgentState,
  foldTask,
  hasEnded,
  interruptedReason,
  startedTask,
} from "../../protocol/agent-state.ts";
import type { AgentId, Op, OpOutcome } from "../../protocol/op.ts";
import type { PermissionQuestion, Question } from "../../protocol/question.ts";
import { loadChildMeta, loadQueueNumber, queueMarkFile } from "../../tasks/child-meta.ts";
import type { RemoteOp } from "../../tasks/watch-control.ts";
import type { AgentTree } from "../agent-tree.ts";
import { type Approval, readApprovals } from "../approvals/find-approvals.ts";
import { messageIn } from "../project/project-tasks.ts";
import { JournalEvents } from "./journal-events.ts";
import type { LivePiece } from "./live-text.ts";
import { submitAct } from "./perform-act.ts";
import { readLiveText } from "./read-live-text.ts";

/**
 * The tree of a session that another process runs. What that process writes down is read as the events of the tree, with
 * the folds of every tree; ops are left for it in the session's folder. The session itself is never written to.
 */
export interface TreeElsewhere
  extends Pick<AgentTree, "sessionId" | "list" | "totals" | "questions">,
    Disposable {
  /** Whether the other process still has it. */
  readonly isOwned: boolean;
  get(id: AgentId): { readonly id: AgentId; state(): AgentState | undefined } | undefined;
  /** The conversation of the main agent, as far as it was read. */
  messages(): readonly Message[];
  /** Calls back with what happens from now on. Children that run are announced; `closed` comes when the process has left it. */
  follow(onEvent: (event: AgentEvent) => void): Promise<void>;
  /** Takes `prompt`, `message`, `stop` and `background`. Rejects where the other process does not take it. */
  submit(agent: AgentId, op: Op): Promise<OpOutcome>;
}

export interface TreeElsewhereOptions {
  readonly transcripts: string;
  readonly sessionId: string;
  /** Who submits ops, and through which program; written to the session's log of acts. */
  readonly by: { readonly user: string; readonly through: string };
}

/** Often enough that an answer is seen to be written. */
const lookMs = 100;
const childrenMs = 250;

/** Reads what has happened so far. */
export async function openTreeElsewhere({
  transcripts,
  sessionId,
  by,
}: TreeElsewhereOptions): Promise<TreeElsewhere> {
  const files = sessionFiles(transcripts, sessionId);
  const live = readLiveText(files);
  const closed = new AbortController();
  const totals = createTreeFold();
  const main = new JournalEvents({ isMain: true });
  const stream = createStream();
  const messages: Message[] = [];
  const children = createChildren(files, (event, { state, at }) => {
    const { id: agentId, parentId, agentType } = state;
    if (isRunEvent(event)) totals.add({ ...event, agentId, parentId, agentType });
    publish(event, agentId, at);
  });
  const asked = new Map<string, PermissionQuestion>();
  let length = 0;
  let isOwned = hasLiveOwner(files.transcript);
  let childrenAt = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let seq = 0;
  let listener: (event: AgentEvent) => void = () => undefined;

  function publish(event: WireEvent, agentId: AgentId = mainAgentId, at = Date.now()): void {
    const { parentId, agentType } = children.state(agentId) ?? {};
    seq += 1;
    listener({ ...event, seq, at, agentId, parentId, agentType });
  }

  async function readMain(): Promise<void> {
    const added = await readNewLines(files.transcript, length).catch(() => undefined);
    length += added?.length ?? 0;
    for (const record of added?.values ?? []) {
      const message = isShownMessage(record) ? messageIn(record) : undefined;
      if (message !== undefined) messages.push(message);
      for (const event of main.read(record)) {
        totals.add({ ...event, agentId: mainAgentId });
        for (const shown of stream.onJournal(event)) publish(shown, mainAgentId, timeOf(record));
      }
    }
  }

  /** What waits in the inbox of the session. */
  function readQuestions(): void {
    const waiting = readApprovals(files.approvals, { now: Date.now }).filter(
      ({ state }) => state === "waiting",
    );
    for (const approval of waiting) {
      const question = studioQuestion(approval);
      if (asked.has(question.id)) continue;
      asked.set(question.id, question);
      publish({ type: "question-asked", question }, question.path.at(-1)?.id);
    }
    for (const id of asked.keys()) {
      if (waiting.some(({ question }) => question.id === id)) continue;
      asked.delete(id);
      publish({ type: "question-closed", question: id });
    }
  }

  async function look(): Promise<void> {
    isOwned = hasLiveOwner(files.transcript);
    const pieces = await live.read().catch(() => []);
    const isDue = performance.now() - childrenAt >= childrenMs;
    if (isDue) await children.read();
    if (isDue) childrenAt = performance.now();
    await readMain();
    if (closed.signal.aborted) return;
    for (const piece of pieces)
      if (piece.agentId === mainAgentId) for (const event of stream.onPiece(piece)) publish(event);
    if (isOwned) readQuestions();
    if (isOwned) timer = setTimeout(() => void look(), lookMs);
    else {
      // An answer that broke off is never finished.
      for (const event of stream.breakOff()) publish(event);
      publish({ type: "closed" });
    }
  }

  await children.read();
  await readMain();
  return {
    sessionId,
    get isOwned() {
      return isOwned;
    },
    messages: () => messages,
    get: (id) => (children.state(id) === undefined ? undefined : { id, state: () => children.state(id) }),
    list: children.list,
    questions: (): readonly Question[] => [...asked.values()],
    totals: totals.totals,
    follow(onEvent) {
      listener = (event) => {
        if (!closed.signal.aborted) onEvent(event);
      };
      children.announce();
      return look();
    },
    async submit(agentId, given) {
      const op = remoteOp(given, agentId);
      const text = op.type === "message" ? op.text : undefined;
      const { outcome } = await submitAct(
        { type: op.type, sessionId, agentId: op.agent, text },
        { transcripts, ...by, signal: closed.signal },
      );
      return { text: outcome };
    },
    [Symbol.dispose]() {
      closed.abort();
      live[Symbol.dispose]();
      clearTimeout(timer);
    },
  };
}

/** What another process takes of an op: a prompt is a message to its agent. */
function remoteOp(op: Op, agent: AgentId): RemoteOp {
  switch (op.type) {
    case "prompt":
      return { type: "message", agent, text: textOf({ role: "user", content: op.content }) };
    case "message":
    case "stop":
      return op;
    case "background":
      return { ...op, agent: op.agent ?? agent };
    default:
      throw new RetinueError(
        "not-supported",
        `Another process has this session open, which does not accept ${op.type}.`,
      );
  }
}

interface Child {
  readonly id: AgentId;
  readonly events: JournalEvents;
  /** The bytes of its transcript that were read. */
  length: number;
  state: AgentState | undefined;
  /** Set while it waits for a place. */
  queueNumber: number | undefined;
  /** What was last published of its status. */
  standing: string | undefined;
}

/** The children of a session by their transcripts. */
function createChildren(
  files: SessionFiles,
  publish: (event: WireEvent, about: { readonly state: AgentState; readonly at: number }) => void,
) {
  const children = new Map<AgentId, Child>();

  async function readChild(child: Child): Promise<void> {
    const { transcript, meta } = files.agent(child.id);
    // Asked first: what a process writes before it leaves is then still read.
    const isRunning = hasLiveOwner(transcript);
    const added = await readNewLines(transcript, child.length, { withLast: !isRunning }).catch(
      () => undefined,
    );
    child.length += added?.length ?? 0;
    for (const record of added?.values ?? []) {
      const at = timeOf(record) ?? Date.now();
      const [plan] = readEarlierPlans([record]);
      if (plan !== undefined || child.state === undefined) {
        const known = plan === undefined ? await loadChildMeta(meta) : undefined;
        child.state = startedChild({ ...known, ...plan }, { child, at });
      }
      for (const event of child.events.read(record)) take(child, event, at);
    }
    child.queueNumber = isRunning ? loadQueueNumber(queueMarkFile(transcript)) : undefined;
    const { state } = child;
    if (!isRunning && state !== undefined && !hasEnded(state)) take(child, cutOff(state), state.lastSignAt);
  }

  function take(child: Child, event: RunEvent, at: number): void {
    if (child.state === undefined) return;
    child.state = foldTask(child.state, event, at);
    publish(event, { state: child.state, at });
  }

  /** That it was started, taken up again or ended, or waits for a place; one that had ended before is not announced. */
  function publishStanding(child: Child): void {
    const state = stateOf(child);
    if (state === undefined) return;
    const standing = `${state.status} ${state.queuePosition ?? ""}`;
    const isNew = child.standing === undefined ? !hasEnded(state) : child.standing !== standing;
    child.standing = standing;
    if (isNew) publish({ type: "agent-changed", state }, { state, at: Date.now() });
  }

  /** The number of a child that waits grows in the order of arrival; its position is how many are before it. */
  function stateOf({ state, queueNumber }: Child): AgentState | undefined {
    if (state === undefined || queueNumber === undefined || hasEnded(state)) return state;
    const before = [...children.values()].filter((other) => (other.queueNumber ?? queueNumber) < queueNumber);
    return { ...state, status: "queued", activity: "waiting for a place", queuePosition: before.length + 1 };
  }

  return {
    state(id: AgentId): AgentState | undefined {
      const child = children.get(id);
      return child && stateOf(child);
    },
    list: () => [...children.values()].flatMap((child) => stateOf(child) ?? []),
    /** The next reading publishes all that have not ended. */
    announce(): void {
      for (const child of children.values()) child.standing = undefined;
    },
    async read(): Promise<void> {
      const names = await readdir(files.subagents).catch(() => []);
      for (const id of names
        .flatMap((name) => /^agent-(.+)\.jsonl$/.exec(name)?.[1] ?? [])
        .filter(isAgentId)) {
        const events = new JournalEvents({ isMain: false });
        const child = children.get(id) ?? {
          id,
          events,
          length: 0,
          state: undefined,
          queueNumber: undefined,
          standing: undefined,
        };
        children.set(id, child);
        await readChild(child);
      }
      for (const child of children.values()) publishStanding(child);
    },
  };
}

/** A plan begins a run; what the child took in earlier ones still counts. */
function startedChild(
  plan: Partial<ReturnType<typeof readEarlierPlans>[number]>,
  { child: { id, state: before }, at }: { readonly child: Child; readonly at: number },
): AgentState {
  const { agentType = "unknown", description = "", name, background = false, callId, depth } = plan;
  const { parentId = mainAgentId } = plan;
  const started = startedTask({ id, agentType, description, name, background, parentId, depth, callId, at });
  if (before === undefined) return started;
  const { startedAt, usage, turns, toolUses, costUsd, lastText } = before;
  return { ...started, startedAt, usage, turns, toolUses, costUsd, lastText };
}

/** Its process ended before it did. */
function cutOff({ lastText: text, usage, turns, toolUses }: AgentState): RunEvent {
  const totals = { usage, turns, toolUses, durationMs: 0, modelMs: 0 };
  const ending = { status: "stopped", reason: interruptedReason, text, totals, denials: [] } as const;
  return { type: "run-ended", ending };
}

/** Equal calls of several agents are one question; its path has an entry for each of them. */
function studioQuestion({ question }: Approval): PermissionQuestion {
  const { id, tool, input, reason, suggestedRules: rules, places, quote, preview } = question;
  const path = places.map(({ agent, path: name }) => ({ id: agent, name }));
  const [{ call: callId = "" } = {}] = places;
  return { kind: "permission", id, path, callId, tool, input, reason, rules, quote, preview };
}

const maxComplete = 20;

/** Joins what the main agent says while it says it with the lines of its complete answers: nothing comes twice. */
function createStream() {
  /** Of answers that are not complete, what was passed on of each block. */
  const streamed = new Map<string, string[]>();
  /** The last answers that were complete; what is read of them afterwards is old. */
  const complete: string[] = [];
  /** The answer that is open. */
  let open: string | undefined;

  const streamEvent = (event: Extract<RunEvent, { type: "model-streamed" }>["event"]): RunEvent => ({
    type: "model-streamed",
    event,
  });

  /** One that broke off is asked for again; both are shown, apart. */
  function breakOff(): readonly RunEvent[] {
    const blocks = open === undefined ? [] : (streamed.get(open) ?? []);
    open = undefined;
    return blocks.flatMap((text, index) =>
      streamEvent({ type: "block-ended", index, block: { type: "text", text } }),
    );
  }

  function begin(id: string, model: string): readonly RunEvent[] {
    if (open === id) return [];
    const before = breakOff();
    open = id;
    return [...before, streamEvent({ type: "message-started", id, model })];
  }

  return {
    breakOff,
    onPiece({ answer, block: index, text }: LivePiece): readonly RunEvent[] {
      if (text === undefined || complete.includes(answer)) return [];
      const started = begin(answer, "");
      const blocks = streamed.get(answer) ?? [];
      streamed.set(answer, blocks);
      blocks[index] = (blocks[index] ?? "") + text;
      return [...started, streamEvent({ type: "text-delta", index, text })];
    },
    onJournal(event: RunEvent): readonly RunEvent[] {
      if (event.type === "answer-lost" || event.type === "run-ended") return [...breakOff(), event];
      if (event.type === "assistant-answered") {
        streamed.delete(event.id);
        open = undefined;
      }
      if (event.type !== "model-streamed") return [event];
      if (event.event.type === "message-started") {
        // Its lines are written together, when it is complete.
        complete.push(event.event.id);
        if (complete.length > maxComplete) complete.shift();
        return begin(event.event.id, event.event.model);
      }
      if (event.event.type !== "block-ended" || event.event.block.type !== "text") return [event];
      // Of a block that was passed on in part, what is left of it.
      const { block } = event.event;
      const blocks = streamed.get(open ?? "") ?? [];
      const index = blocks.findIndex((text) => text !== undefined && block.text.startsWith(text));
      if (index === -1) return [event];
      const text = block.text.slice(blocks[index]?.length ?? 0);
      delete blocks[index];
      const rest = text === "" ? [] : [streamEvent({ type: "text-delta", index, text })];
      return [...rest, streamEvent({ type: "block-ended", index, block })];
    },
  };
}
