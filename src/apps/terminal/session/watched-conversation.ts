import type { Message } from "../../../conversation/message.ts";
import { isRecord, type JsonRecord } from "../../../foundation/json-record.ts";
import { readAssistantBlocks, readUserBlocks } from "../../../journal/read-assistant-blocks.ts";
import { sessionFiles } from "../../../journal/session-files.ts";
import { isShownMessage } from "../../../journal/session-title.ts";
import { hasLiveOwner } from "../../../storage/owner-lock.ts";
import { readNewLines } from "../../../storage/read-lines.ts";
import { callText } from "../../../tasks/recovery/child-run.ts";
import { type FoundTask, findTasks } from "../../../tasks/recovery/find-tasks.ts";
import { conversationEntries, lastEntries } from "./conversation-entries.ts";
import type { AgentEntry, AgentSnapshot, SessionEvent, ToolCall } from "./terminal-session.ts";

export interface WatchOptions {
  readonly transcripts: string;
  readonly sessionId: string;
  readonly report: (event: SessionEvent) => void;
  /** How many of the last prompts are shown of what was said before. */
  readonly shownPrompts: number;
}

const lookMs = 250;

/** A conversation that another process has open, followed through its files and never written to. */
export class WatchedConversation implements Disposable {
  readonly sessionId: string;
  readonly #options: WatchOptions;
  readonly #calls = new Map<string, ToolCall>();
  /** What was last reported of each agent. */
  readonly #agents = new Map<string, string>();
  readonly #entries: AgentEntry[] = [];
  #at = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #isOwned = true;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.sessionId = options.sessionId;
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
    const entries = await this.#readEntries().catch(() => []);
    const tasks = await findTasks(this.#options.transcripts, { sessionId: this.sessionId }).catch(() => []);
    if (this.#isClosed) return;
    for (const task of tasks) this.#showAgent(task);
    for (const entry of entries) this.#show(entry);
    if (isOwned) this.#timer = setTimeout(() => void this.#look(), lookMs);
    else this.#ownerLeft();
  }

  #ownerLeft(): void {
    this.#isOwned = false;
    const text = "The other terminal has closed this conversation. Write a message to continue it here.";
    this.#options.report({ type: "notice", level: "info", text });
  }

  async #readEntries(): Promise<readonly AgentEntry[]> {
    const { values, length } = await readNewLines(this.#file, this.#at);
    this.#at += length;
    const entries = conversationEntries(values.flatMap(messageOf));
    this.#entries.push(...entries);
    return entries;
  }

  get #file(): string {
    return sessionFiles(this.#options.transcripts, this.sessionId).transcript;
  }

  #noteCall(entry: AgentEntry): void {
    if (entry.type === "call") this.#calls.set(entry.call.id, entry.call);
    if (entry.type === "result") this.#calls.delete(entry.callId);
  }

  #show(entry: AgentEntry): void {
    const { report } = this.#options;
    const call = entry.type === "result" ? this.#calls.get(entry.callId) : undefined;
    if (entry.type === "prompt") report({ type: "message-read", text: entry.text });
    if (entry.type === "text") report({ type: "said", text: entry.text });
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
    ...(task.cost === undefined ? {} : { costUsd: task.cost }),
    ...(isRunning ? {} : { endedAt: lastSignAt }),
    ...(isRunning || task.reason === undefined || state === "completed" ? {} : { reason: task.reason }),
  };
}
