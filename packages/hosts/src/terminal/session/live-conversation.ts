import { randomUUID } from "node:crypto";
import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { UserMessage } from "@retinue/core/conversation/message.ts";
import type { RunEnding, RunEvent } from "@retinue/core/conversation/run-event.ts";
import { contextTokens } from "@retinue/core/conversation/usage.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import { commandEndNotice, type TaskView } from "@retinue/core/kernel/session.ts";
import { endingAdvice } from "../../shared/ending-advice.ts";
import { AgentTracker } from "./agent-tracker.ts";
import { planReminder } from "./create-plan-tool.ts";
import type { MessageQueue } from "./message-queue.ts";
import { RunEvents } from "./run-events.ts";
import type { AgentEntry, SessionEvent, ToolCall } from "./terminal-session.ts";

export interface LiveConversationOptions {
  readonly session: Session;
  readonly queue: MessageQueue;
  readonly report: (event: SessionEvent) => void;
  /** The permission mode now. */
  readonly mode: () => string;
  /** Another conversation is about to take its place, and what waits is for that one. */
  readonly isLeaving: () => boolean;
  /** What an agent has said and done so far, from its file. */
  readonly stored: (agentId: string) => Promise<readonly AgentEntry[]>;
}

/** One open conversation of the runtime: its turns one after the other, its agents, and commands beside them. */
export class LiveConversation implements AsyncDisposable {
  readonly session: Session;
  readonly #options: LiveConversationOptions;
  readonly #tracker: AgentTracker;
  #turn: AbortController | undefined;
  /** Commands that the person runs at the prompt. */
  readonly #shells = new Set<AbortController>();
  #cost = 0;
  #isClosed = false;
  readonly #forgetMail: () => void;
  /** What the person did beside the conversation; the agent reads it with the next message. */
  #asides: string[] = [];
  /** Commands of the main agent and of the person that run in the background. */
  readonly #commands = new Map<string, TaskView>();
  /** Tasks of commands that the person ran. */
  readonly #personal = new Set<string>();
  /** What was said of an answer that is not complete. */
  #unfinished = "";
  /** Ends of commands that the agent has not read yet. */
  #reports: UserMessage[] = [];

  constructor(options: LiveConversationOptions) {
    this.session = options.session;
    this.#options = options;
    this.#tracker = new AgentTracker({
      colourOf: (agentType) => {
        const found = this.session.discovered.registry.find(agentType);
        return found.type === "found" ? found.agent.definition.color : undefined;
      },
      clockOffset: Date.now() - performance.now(),
      changed: (agent) => options.report({ type: "agent-changed", agent }),
    });
    void this.#followAgents();
    this.#forgetMail = this.session.onTeamMail(() => this.continue());
  }

  get isBusy(): boolean {
    return this.#turn !== undefined;
  }

  /** Agents that have not ended, as a few words each. */
  runningAgents(): readonly string[] {
    return this.session.tasks
      .list()
      .filter(({ status }) => status === "running" || status === "queued")
      .map(({ agentType, description }) => `${agentType}: ${description}`);
  }

  /** Commands in the background, as a few words each. */
  runningCommands(): readonly string[] {
    return [...this.#commands.values()].map(
      ({ command = "", description }) => `Bash: ${command || description}`,
    );
  }

  /** A command in the background was started or has ended. */
  commandChanged(view: TaskView): void {
    // Those of a child end with it, and it reads what becomes of them.
    if (this.#isClosed || this.session.tasks.get(view.owner) !== undefined) return;
    const { id, state, command = view.description, exitCode, startedAt, endedAt = view.lastSignAt } = view;
    if (state === "running") return void this.#commands.set(id, view);
    if (!this.#commands.delete(id)) return;
    this.#options.report({
      type: "command-ended",
      command: {
        command,
        state,
        durationMs: endedAt - startedAt,
        ...(exitCode === undefined ? {} : { exitCode }),
      },
    });
    if (state === "stopped") return;
    const notice = commandEndNotice(view);
    if (this.#personal.delete(id)) this.#asides.push(...blocksOf(notice).flatMap(textIn));
    else {
      this.#reports.push(notice);
      this.continue();
    }
  }

  /** Ends of commands that have not been read. */
  takeReports(): readonly UserMessage[] {
    return this.#reports.splice(0);
  }

  addAside(text: string): void {
    this.#asides.push(text);
  }

  /** Sends the next message, or what agents in the background have to report, when nothing runs. */
  continue(): void {
    if (this.#turn !== undefined || this.#isClosed || this.#options.isLeaving()) return;
    const text = this.#options.queue.takeFirst();
    const content = text === undefined ? this.#news().flatMap(blocksOf) : this.#contentOf(text);
    if (content.length > 0) void this.#runTurn(content);
  }

  #news(): readonly UserMessage[] {
    return [...this.session.takeNotices(), ...this.takeReports()];
  }

  interrupt(reason = new RetinueError("aborted", "The person interrupted the turn.")): void {
    this.#turn?.abort(reason);
    for (const shell of this.#shells) shell.abort(reason);
  }

  moveToBackground(agentId?: string): readonly string[] {
    const { tasks } = this.session;
    const commands = agentId === undefined ? this.session.moveCommands() : [];
    const agents = tasks
      .list()
      .filter(({ id, background, status, team }) => {
        const isMeant = agentId === undefined || agentId === id;
        return isMeant && !background && team === undefined && (status === "running" || status === "queued");
      })
      .filter(({ id }) => tasks.detach(id))
      .map(({ id, description }) => {
        const state = tasks.get(id);
        if (state !== undefined)
          this.#options.report({ type: "agent-changed", agent: this.#tracker.snapshot(state) });
        return description;
      });
    return [...agents, ...commands];
  }

  async messageAgent(agentId: string, text: string): Promise<string> {
    const { tasks } = this.session;
    if (await this.session.messageTeammate(agentId, text)) return "Sent; the teammate reads it next.";
    const message: UserMessage = { role: "user", content: [{ type: "text", text }] };
    if (tasks.send(agentId, message)) return "Sent; it reads the message before its next step.";
    const state = tasks.get(agentId);
    const handle = this.session.spawn(state?.agentType ?? "general-purpose", text, {
      resume: agentId,
      background: true,
      ...(state === undefined ? {} : { description: state.description }),
    });
    await handle.id;
    return "It continues in the background with your message.";
  }

  watchAgent(agentId: string, listener: (entry: AgentEntry) => void): () => void {
    const early: AgentEntry[] = [];
    let pass = (entry: AgentEntry): void => void early.push(entry);
    const forget = this.#tracker.watch(agentId, (entry) => pass(entry));
    void this.#options.stored(agentId).then((stored) => {
      const seen = new Set(stored.map((entry) => JSON.stringify(entry)));
      for (const entry of stored) listener(entry);
      for (const entry of early) if (!seen.has(JSON.stringify(entry))) listener(entry);
      pass = listener;
    });
    return forget;
  }

  /** Runs a command of the person through the rules and questions of the session. */
  runShell(command: string): void {
    const { report } = this.#options;
    const [bash] = this.session.loopTools(["Bash"]);
    if (bash === undefined) {
      report({ type: "notice", level: "warning", text: "There is no shell in this session." });
      return;
    }
    const stop = new AbortController();
    this.#shells.add(stop);
    const call: ToolCall = {
      id: `shell-${randomUUID()}`,
      tool: "Bash",
      input: { command },
      isPerson: true,
    };
    const start = performance.now();
    const onProgress = (text: string): void => report({ type: "call-progressed", callId: call.id, text });
    report({ type: "call-started", call });
    const ended = bash.call(call.input, { signal: stop.signal, callId: call.id, onProgress });
    void ended.then(({ text, isError, data }) => {
      const durationMs = performance.now() - start;
      this.#shells.delete(stop);
      this.addAside(`${shellAside}\n$ ${command}\n${text}`);
      const task = isRecord(data) ? data["backgroundTaskId"] : undefined;
      if (typeof task === "string") this.#personal.add(task);
      const shown = task === undefined ? text : `It continues in the background as task ${String(task)}.`;
      report({ type: "call-finished", call, result: { text: shown, isError, durationMs } });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#forgetMail();
    this.interrupt(new RetinueError("interrupted", "The conversation was closed."));
    await this.session[Symbol.asyncDispose]();
  }

  async #runTurn(content: UserMessage["content"]): Promise<void> {
    const { report } = this.#options;
    const turn = new AbortController();
    this.#turn = turn;
    report({ type: "turn-started" });
    const events = new RunEvents();
    let ending: RunEnding | undefined;
    let error: string | undefined;
    try {
      for await (const event of this.session.stream(content, turn.signal)) {
        if (event.type === "run-ended") ending = event.ending;
        else this.#hear(event, events);
      }
    } catch (thrown) {
      error = describeError(thrown);
    }
    this.#turn = undefined;
    this.#keepUnfinished(turn.signal.aborted);
    const status = ending?.status ?? (turn.signal.aborted ? "stopped" : "failed");
    const reason =
      error ?? (ending === undefined ? undefined : describeEnding(ending, this.session.plan.sessionId));
    const isTold = reason !== undefined && status !== "stopped" && status !== "completed";
    if (ending?.reason === "nothing_to_compact") report({ type: "notice", level: "info", text: ending.text });
    report({ type: "turn-ended", outcome: { status, ...(isTold ? { error: reason } : {}) } });
    this.continue();
  }

  /** An answer that was interrupted is not part of the conversation; the agent learns what of it was read. */
  #keepUnfinished(isInterrupted: boolean): void {
    const text = this.#unfinished.trim();
    this.#unfinished = "";
    if (isInterrupted && text !== "")
      this.addAside(
        `<system-reminder>\nThe person interrupted your last answer. This is the end of what they had read of it:\n${escapeControlTags(text.slice(-maxUnfinished))}\n</system-reminder>`,
      );
  }

  #hear(event: RunEvent, events: RunEvents): void {
    const { report } = this.#options;
    for (const one of events.read(event)) {
      if (one.type === "text") this.#unfinished += one.text;
      if (one.type === "retry") this.#unfinished = "";
      report(one);
    }
    if (event.type === "assistant-answered") {
      this.#unfinished = "";
      const used = contextTokens(event.usage) + event.usage.outputTokens;
      report({ type: "status-changed", status: { contextFill: used / this.session.model.contextWindow } });
    }
    if (!("costUsd" in event) || event.costUsd === undefined) return;
    this.#cost += event.costUsd;
    this.#tellCost();
  }

  #tellCost(): void {
    const costUsd = this.#cost + this.#tracker.costUsd();
    this.#options.report({ type: "status-changed", status: { costUsd } });
  }

  async #followAgents(): Promise<void> {
    const { tasks } = this.session;
    for await (const news of tasks.watch()) {
      if (this.#isClosed) return;
      this.#tracker.hear(news);
      const { event, state } = news;
      if (event.type === "assistant-answered" || event.type === "run-ended") this.#tellCost();
      // What it has to report arrives when it has let go of everything.
      if (event.type === "run-ended" && state.background)
        void tasks.ended(state.id).then(() => this.continue());
    }
  }

  #contentOf(text: string): UserMessage["content"] {
    const asides = this.#asides.splice(0);
    const reminder = this.#options.mode() === "plan" ? [planReminder] : [];
    if (asides.length + reminder.length === 0) return text;
    return [...asides, text, ...reminder].map((one) => ({ type: "text", text: one }));
  }
}

const maxUnfinished = 4_000;

/** Precedes a command that a person ran at the prompt. */
export const shellAside = "I ran this command at the prompt:";

function textIn(block: Exclude<UserMessage["content"], string>[number]): readonly string[] {
  return block.type === "text" ? [block.text] : [];
}

function blocksOf({ content }: UserMessage): Exclude<UserMessage["content"], string> {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** What went wrong and what to do about it. */
function describeEnding(ending: RunEnding, sessionId: string): string | undefined {
  if (ending.error === undefined) return undefined;
  const advice = endingAdvice(ending);
  // A process keeps the key that it was started with.
  const again =
    ending.reason === "unauthorized"
      ? `Then leave with ctrl+d and continue here: retinue --resume ${sessionId}`
      : undefined;
  return [ending.error, advice, again].filter((part) => part !== undefined).join(" ");
}

export function describeError(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return isRetinueError(error) && error.advice !== undefined ? `${message} ${error.advice}` : message;
}
