import type { LivePiece } from "@retinue/core/kernel/live/live-text.ts";
import {
  type SessionWatch,
  type WatchedAgent,
  watchSession,
} from "@retinue/core/kernel/live/watch-session.ts";
import { conversationEntries, lastEntries } from "./conversation-entries.ts";
import type { AgentEntry, AgentSnapshot, SessionEvent, ToolCall } from "./terminal-session.ts";

export interface WatchOptions {
  readonly transcripts: string;
  readonly sessionId: string;
  readonly report: (event: SessionEvent) => void;
  /** How many of the last prompts are shown of what was said before. */
  readonly shownPrompts: number;
  /** What is written here is sent to the process that has it. */
  readonly follows?: boolean;
}

const watched = "Another terminal has this conversation open. You watch it; /fork continues it in a copy.";
const followed =
  "This session runs in the background. What you write reaches it between its turns; leaving (Ctrl+D) does not end it.";

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
  readonly #watch: SessionWatch;
  /** Answers of which something was shown before they were complete, and how much of each block. */
  readonly #streamed = new Map<string, string[]>();
  /** The last answers that were complete; what is read of them afterwards is old. */
  readonly #complete: string[] = [];
  /** The answer of which a piece was shown last. */
  #streaming: string | undefined;
  /** Questions that the person has been told of. */
  readonly #asked = new Set<string>();
  #agentsAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #isOwned = true;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.sessionId = options.sessionId;
    this.#watch = watchSession(options.transcripts, options.sessionId, { now: Date.now });
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
    const { report, sessionId, shownPrompts, follows } = this.#options;
    const earlier = await this.#readEntries();
    report({
      type: "conversation-opened",
      sessionId,
      earlier: lastEntries(earlier, shownPrompts),
      notes: [follows === true ? followed : watched],
      isReadOnly: follows !== true,
    });
    const mode = follows === true ? "background" : "watching";
    report({ type: "status-changed", status: { model: "", mode, modes: [mode] } });
    for (const entry of earlier) this.#noteCall(entry);
    await this.#look();
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#watch[Symbol.dispose]();
    clearTimeout(this.#timer);
  }

  async #look(): Promise<void> {
    const isOwned = this.#watch.isOwned();
    const pieces = await this.#watch.pieces().catch(() => []);
    const entries = await this.#readEntries().catch(() => []);
    const tasks = await this.#findTasks();
    if (this.#isClosed) return;
    for (const task of tasks) this.#showAgent(task);
    for (const entry of entries) this.#show(entry);
    for (const piece of pieces) this.#showPiece(piece);
    if (isOwned) this.#showQuestions();
    if (isOwned) this.#timer = setTimeout(() => void this.#look(), lookMs);
    else this.#ownerLeft();
  }

  async #findTasks(): Promise<readonly WatchedAgent[]> {
    const now = performance.now();
    if (now - this.#agentsAt < agentsMs) return [];
    this.#agentsAt = now;
    return this.#watch.agents().catch(() => []);
  }

  /** Nobody is asked in the process that has the session: its questions wait in the inbox. */
  #showQuestions(): void {
    for (const { id, call, agents } of this.#watch.questions()) {
      if (this.#asked.has(id)) continue;
      this.#asked.add(id);
      const text = `${agents.join(", ")} waits for an answer: ${call} (/approvals, or retinue approve ${id}).`;
      this.#options.report({ type: "notice", level: "warning", text });
    }
  }

  #showPiece({ agentId, answer, block, text }: LivePiece): void {
    if (agentId !== "main" || text === undefined || this.#complete.includes(answer)) return;
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
    // An answer that broke off is never finished.
    if (this.#streaming !== undefined && !this.#complete.includes(this.#streaming))
      this.#options.report({ type: "text", text: "\n\n" });
    const who =
      this.#options.follows === true
        ? "The session has ended"
        : "The other terminal has closed this conversation";
    const text = `${who}. Write a message to continue it here.`;
    this.#options.report({ type: "notice", level: "info", text });
  }

  async #readEntries(): Promise<readonly WatchedEntry[]> {
    const entries = (await this.#watch.messages()).flatMap(({ message, answer }) =>
      conversationEntries([message]).map((entry) =>
        entry.type === "text" ? this.#restOf(entry, answer) : entry,
      ),
    );
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

  #showAgent(task: WatchedAgent): void {
    const { state, lastSignAt, startedAt = lastSignAt } = task;
    const isRunning = state === "running";
    const agent: AgentSnapshot = {
      id: task.id,
      ...(task.parentId === undefined ? {} : { parentId: task.parentId }),
      ...(task.depth === undefined ? {} : { depth: task.depth }),
      name: task.name ?? task.agentType,
      description: task.description,
      state: state === "interrupted" ? "stopped" : state,
      isBackground: task.background,
      activity: task.activity,
      tokens: task.tokens,
      startedAt,
      callId: task.callId,
      costUsd: task.costUsd,
      ...(isRunning ? {} : { endedAt: lastSignAt }),
      ...(isRunning || task.reason === undefined || state === "completed" ? {} : { reason: task.reason }),
    };
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
