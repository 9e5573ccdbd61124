import type { Message } from "../../../conversation/message.ts";
import { isRecord, type JsonRecord } from "../../../foundation/json-record.ts";
import { readAssistantBlocks, readUserBlocks } from "../../../journal/read-assistant-blocks.ts";
import { sessionFiles } from "../../../journal/session-files.ts";
import { isShownMessage } from "../../../journal/session-title.ts";
import { hasLiveOwner } from "../../../storage/owner-lock.ts";
import { readNewLines } from "../../../storage/read-lines.ts";
import { callText } from "../../../tasks/child-run.ts";
import { type FoundTask, findTasks } from "../../../tasks/find-tasks.ts";
import { AnswerFollower, type AnswerPiece } from "./answer-relay.ts";
import { conversationEntries, lastEntries } from "./conversation-entries.ts";
import type { AgentEntry, AgentSnapshot, SessionEvent, ToolCall } from "./terminal-session.ts";

export interface WatchOptions {
  readonly transcripts: string;
  readonly sessionId: string;
  readonly report: (event: SessionEvent) => void;
  /** How many of the last prompts are shown of what was said before. */
  readonly shownPrompts: number;
}

/** Often enough that an answer is seen to be written. */
const lookMs = 100;
const agentsMs = 250;

/** A conversation that another process has open, followed through its files and never written to. */
export class WatchedConversation implements Disposable {
  readonly sessionId: string;
  readonly #options: WatchOptions;
  readonly #calls = new Map<string, ToolCall>();
  /** What was last reported of each agent. */
  readonly #agents = new Map<string, string>();
  readonly #entries: AgentEntry[] = [];
  readonly #follower: AnswerFollower;
  /** Answers of which something was shown before they were complete, and how much of each block. */
  readonly #streamed = new Map<string, string[]>();
  /** The last answers that were complete; what is read of them afterwards is old. */
  readonly #complete: string[] = [];
  /** The answer of which a piece was shown last. */
  #streaming: string | undefined;
  #agentsAt = Number.NEGATIVE_INFINITY;
  #at = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #isOwned = true;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.sessionId = options.sessionId;
    this.#follower = new AnswerFollower(sessionFiles(options.transcripts, options.sessionId).directory);
  }

  /** Whether the other process still has it. */
  get isOwned(): boolean {
    return this.#isOwned;
  }

  entries(): readonly AgentEntry[] {
    return this.#entries;
  }

  /** Reports what was said so far, and from then on what comes. */
  async open(): Promise<void> {
    const { report, sessionId, shownPrompts } = this.#options;
    const earlier = await this.#readEntries();
    report({
      type: "conversation-opened",
      sessionId,
      earlier: lastEntries(earlier, shownPrompts),
      notes: ["Another terminal has this conversation open. You watch it; /fork continues it in a copy."],
      isReadOnly: true,
    });
    report({ type: "status-changed", status: { model: "", mode: "watching", modes: ["watching"] } });
    for (const entry of earlier) this.#noteCall(entry);
    await this.#look();
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #look(): Promise<void> {
    // Asked first: what an owner writes before it leaves is then still read.
    const isOwned = hasLiveOwner(this.#file);
    const pieces = await this.#follower.read(Date.now()).catch(() => []);
    const entries = await this.#readEntries().catch(() => []);
    const tasks = await this.#findTasks();
    if (this.#isClosed) return;
    for (const task of tasks) this.#showAgent(task);
    for (const entry of entries) this.#show(entry);
    for (const piece of pieces) this.#showPiece(piece);
    if (isOwned) this.#timer = setTimeout(() => void this.#look(), lookMs);
    else this.#ownerLeft();
  }

  async #findTasks(): Promise<readonly FoundTask[]> {
    const now = performance.now();
    if (now - this.#agentsAt < agentsMs) return [];
    this.#agentsAt = now;
    return findTasks(this.#options.transcripts, { sessionId: this.sessionId }).catch(() => []);
  }

  #showPiece({ answer, block, text }: AnswerPiece): void {
    if (this.#complete.includes(answer)) return;
    // One that broke off is asked for again; both are shown, apart.
    const isBrokenOff = this.#streaming !== undefined && !this.#complete.includes(this.#streaming);
    if (isBrokenOff && this.#streaming !== answer) this.#options.report({ type: "text", text: "\n\n" });
    this.#streaming = answer;
    const blocks = this.#streamed.get(answer) ?? [];
    this.#streamed.set(answer, blocks);
    blocks[block] = (blocks[block] ?? "") + text;
    this.#options.report({ type: "text", text });
  }

  #ownerLeft(): void {
    this.#isOwned = false;
    const text = "The other terminal has closed this conversation. Write a message to continue it here.";
    this.#options.report({ type: "notice", level: "info", text });
  }

  async #readEntries(): Promise<readonly WatchedEntry[]> {
    const { values, length } = await readNewLines(this.#file, this.#at);
    this.#at += length;
    const entries = values.flatMap((record) => {
      const found = conversationEntries(messageOf(record));
      return found.map((entry) => (entry.type === "text" ? this.#restOf(entry, idOf(record)) : entry));
    });
    this.#entries.push(...entries);
    return entries;
  }

  /** What of a complete text was not shown yet. */
  #restOf(entry: Extract<AgentEntry, { type: "text" }>, answer: string | undefined): WatchedEntry {
    if (answer === undefined) return entry;
    if (!this.#complete.includes(answer)) this.#complete.push(answer);
    if (this.#complete.length > maxComplete) this.#complete.shift();
    const blocks = this.#streamed.get(answer) ?? [];
    const at = blocks.findIndex((block) => block !== undefined && entry.text.startsWith(block));
    const shown = blocks[at];
    if (shown === undefined) return entry;
    delete blocks[at];
    return { ...entry, rest: entry.text.slice(shown.length) };
  }

  get #file(): string {
    return sessionFiles(this.#options.transcripts, this.sessionId).transcript;
  }

  #noteCall(entry: AgentEntry): void {
    if (entry.type === "call") this.#calls.set(entry.call.id, entry.call);
    if (entry.type === "result") this.#calls.delete(entry.callId);
  }

  #show(entry: WatchedEntry): void {
    const { report } = this.#options;
    const call = entry.type === "result" ? this.#calls.get(entry.callId) : undefined;
    if (entry.type === "prompt") report({ type: "message-read", text: entry.text });
    if (entry.type === "text" && entry.rest === undefined) report({ type: "said", text: entry.text });
    if (entry.type === "text" && entry.rest !== undefined)
      report({ type: "text", text: `${entry.rest}\n\n` });
    if (entry.type === "call") report({ type: "call-started", call: entry.call });
    if (entry.type === "result" && call !== undefined)
      report({ type: "call-finished", call, result: entry.result });
    this.#noteCall(entry);
  }

  #showAgent(task: FoundTask): void {
    const agent = snapshotOf(task);
    const text = JSON.stringify(agent);
    const isNew = !this.#agents.has(task.id);
    if (this.#agents.get(task.id) === text) return;
    this.#agents.set(task.id, text);
    // Those that had ended before are part of what was said.
    if (!isNew || agent.endedAt === undefined) this.#options.report({ type: "agent-changed", agent });
  }
}

/** Of a text that was partly shown, what is left of it. */
type WatchedEntry = AgentEntry & { readonly rest?: string };

const maxComplete = 20;

function idOf({ type, message }: JsonRecord): string | undefined {
  const id = type === "assistant" && isRecord(message) ? message["id"] : undefined;
  return typeof id === "string" ? id : undefined;
}

function messageOf(record: JsonRecord): readonly Message[] {
  if (!isShownMessage(record) || !isRecord(record.message)) return [];
  const { content } = record.message;
  return record.type === "user"
    ? [{ role: "user", content: [...readUserBlocks(content)] }]
    : [{ role: "assistant", content: [...readAssistantBlocks(content)] }];
}

function activityOf({ queuePosition, current }: FoundTask): string {
  if (queuePosition !== undefined) return "queued";
  return current === undefined ? "thinking" : callText(current);
}

function snapshotOf(task: FoundTask): AgentSnapshot {
  const { state, lastSignAt, startedAt = lastSignAt } = task;
  const isRunning = state === "running";
  return {
    id: task.id,
    name: task.name ?? task.agentType,
    description: task.description,
    state: state === "interrupted" ? "stopped" : state,
    isBackground: task.background,
    activity: activityOf(task),
    tokens: task.tokens,
    startedAt,
    ...(task.callId === undefined ? {} : { callId: task.callId }),
    ...(task.costUsd === undefined ? {} : { costUsd: task.costUsd }),
    ...(isRunning ? {} : { endedAt: lastSignAt }),
    ...(isRunning || task.reason === undefined || state === "completed" ? {} : { reason: task.reason }),
  };
}
