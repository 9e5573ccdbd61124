import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { mainAgentId } from "@retinue/core/conversation/agent-event.ts";
import { textOf } from "@retinue/core/conversation/message.ts";
import type { RunEnding, RunEvent } from "@retinue/core/conversation/run-event.ts";
import { contextTokens } from "@retinue/core/conversation/usage.ts";
import type { Agent, AgentTree, TreeFacts } from "@retinue/core/kernel/agent-tree.ts";
import type { AgentEvent, BackgroundCommand, PromptOutcome } from "@retinue/core/protocol/agent-event.ts";
import { hasEnded } from "@retinue/core/protocol/agent-state.ts";
import type { QueuedPrompt } from "@retinue/core/protocol/op.ts";
import { foldWorkflow, type WorkflowRunState } from "@retinue/core/protocol/workflow-state.ts";
import type { TaskState } from "../../../../../src/index.ts";
import { untilText } from "../../shared/debug-line.ts";
import { mergeNotice } from "../../shared/describe-merge.ts";
import { endingAdvice, refusalForPeople } from "../../shared/ending-advice.ts";
import { callSubject } from "../text/finished-call-rows.ts";
import { RunEvents, toCall, todoItem, toResult } from "./run-events.ts";
import { describeQuestion } from "./session-questions.ts";
import type { AgentEntry, AgentSnapshot, QueuedMessage, SessionEvent, ToolCall } from "./terminal-session.ts";

export interface ConversationViewOptions {
  readonly report: (event: SessionEvent) => void;
  /** The working directory, which diffs are previewed in. */
  readonly directory: string;
  /** A file as it is shown. */
  readonly fileName: (file: string) => string;
  /** Whether prompts that wait are shown; false while another conversation takes the place of this one. */
  readonly showsPrompts: () => boolean;
  /** What an agent has said and done so far, from its file. */
  readonly stored: (
    agentId: string,
  ) => Promise<{ readonly entries: readonly AgentEntry[]; readonly inFlight: readonly string[] }>;
  /** What has to be added to the times of agents to get the time of day. */
  readonly clockOffset: number;
}

/** What of a tree is looked at; of one that another process runs, its facts are not known. */
export interface ViewedTree extends Pick<AgentTree, "list" | "questions" | "totals"> {
  get(id: string): Pick<Agent, "id" | "state"> | undefined;
  readonly facts?: Pick<TreeFacts, "discovered" | "model">;
  addAside?(text: string): void;
}

/** What the terminal shows of one conversation, made from the events of its tree. */
export class ConversationView {
  readonly #options: ConversationViewOptions;
  readonly #tracker: AgentTracker;
  /** Commands of the main agent and of the person that run in the background. */
  readonly #commands = new Map<string, BackgroundCommand>();
  readonly #shownQuestions = new Set<string>();
  #tree: ViewedTree | undefined;
  #run = new RunEvents();
  readonly #workflows = new Map<string, WorkflowRunState>();
  #turn: string | undefined;
  /** The text so far of an answer that is not complete. */
  #unfinished = "";

  constructor(options: ConversationViewOptions) {
    this.#options = options;
    this.#tracker = new AgentTracker({
      colourOf: (agentType) => {
        const found = this.#tree?.facts?.discovered.registry.find(agentType);
        return found?.type === "found" ? found.agent.definition.color : undefined;
      },
      fileName: options.fileName,
      clockOffset: options.clockOffset,
      changed: (agent) => options.report({ type: "agent-changed", agent }),
    });
  }

  attach(tree: ViewedTree): void {
    this.#tree = tree;
  }

  /** Agents that have not ended, as a few words each. */
  runningAgents(): readonly string[] {
    return (this.#tree?.list() ?? [])
      .filter((state) => !hasEnded(state))
      .map(({ agentType, description }) => `${agentType}: ${description}`);
  }

  /** Commands in the background, as a few words each. */
  runningCommands(): readonly string[] {
    return [...this.#commands.values()].map(
      ({ command = "", description }) => `Bash: ${command || description}`,
    );
  }

  watchAgent(agentId: string, listener: (entry: AgentEntry) => void): () => void {
    const early: AgentEntry[] = [];
    let pass = (entry: AgentEntry): void => void early.push(entry);
    const forget = this.#tracker.watch(agentId, (entry) => pass(entry));
    void this.#options.stored(agentId).then(({ entries, inFlight }) => {
      // A call that still runs has no result yet; of an agent that ended without one, that is said.
      const isRunning = this.#tree?.list().some((state) => state.id === agentId && !hasEnded(state)) === true;
      const stored = entries.filter(
        (entry) => !(isRunning && entry.type === "result" && inFlight.includes(entry.callId)),
      );
      const seen = new Set(stored.map((entry) => JSON.stringify(entry)));
      for (const entry of stored) listener(entry);
      for (const entry of early) if (!seen.has(JSON.stringify(entry))) listener(entry);
      pass = listener;
    });
    return forget;
  }

  onEvent(event: AgentEvent): void {
    const { report } = this.#options;
    switch (event.type) {
      case "prompts-changed":
        if (this.#options.showsPrompts())
          report({ type: "queue-changed", messages: event.prompts.map(queuedMessage) });
        return;
      case "prompt-started":
        this.#turn = event.id;
        this.#run = new RunEvents();
        if (event.origin === "prompt") report({ type: "message-read", text: promptText(event) });
        report({ type: "turn-started" });
        return;
      case "prompt-read":
        report({ type: "message-read", text: promptText(event.prompt) });
        return;
      case "prompt-ended":
        if (event.id === this.#turn && event.outcome !== "withdrawn") this.#endTurn(event);
        return;
      case "status-changed": {
        const { mode, title } = event.status;
        if (mode !== undefined) report({ type: "status-changed", status: { mode } });
        if (title !== undefined) report({ type: "status-changed", status: { title } });
        return;
      }
      case "agent-changed":
        report({ type: "agent-changed", agent: this.#tracker.snapshot(event.state) });
        return;
      case "command-changed":
        this.#commandChanged(event.command);
        return;
      case "shell-started":
        report({ type: "call-started", call: shellCall(event) });
        return;
      case "shell-progressed":
        report({ type: "call-progressed", callId: event.id, text: event.text });
        return;
      case "shell-finished": {
        const { isError, durationMs, taskId } = event;
        const shown = isError ? refusalForPeople(event.text) : event.text;
        const text = taskId === undefined ? shown : `It continues in the background as task ${taskId}.`;
        report({ type: "call-finished", call: shellCall(event), result: { text, isError, durationMs } });
        return;
      }
      case "question-asked":
        void this.#showQuestion(event.question);
        return;
      case "question-closed":
        if (this.#shownQuestions.delete(event.question))
          report({ type: "question-closed", questionId: event.question });
        return;
      case "todos-changed":
        report({ type: "todos-changed", todos: event.todos.map(todoItem) });
        return;
      case "notice":
        report({ type: "notice", level: event.level, text: event.text });
        return;
      case "merge-stepped": {
        const text = mergeNotice(event);
        if (text !== undefined) report({ type: "notice", level: "info", text });
        return;
      }
      case "workflow-changed": {
        this.#workflowChanged(event);
        return;
      }
      case "agent-released":
      case "closed":
        return;
      default:
        if (event.agentId === mainAgentId) this.#onMainEvent(event);
        else this.#onChildEvent(event);
    }
  }

  #onMainEvent(event: RunEvent): void {
    const { report } = this.#options;
    if (event.type === "run-ended") return;
    if (event.type === "model-fell-back") this.#unfinished = "";
    for (const one of this.#run.read(event)) {
      if (one.type === "text") this.#unfinished += one.text;
      if (one.type === "retry") this.#unfinished = "";
      report(one);
    }
    if (event.type === "assistant-answered") {
      this.#unfinished = "";
      const used = contextTokens(event.usage) + event.usage.outputTokens;
      const window = this.#tree?.facts?.model.contextWindow ?? Number.POSITIVE_INFINITY;
      report({ type: "status-changed", status: { contextFill: used / window } });
    }
    if ("costUsd" in event && event.costUsd !== undefined) this.#reportCost();
  }

  #onChildEvent(event: RunEvent & Pick<AgentEvent, "agentId">): void {
    const state = this.#tree?.get(event.agentId)?.state();
    if (state === undefined) return;
    this.#tracker.onEvent(event, state);
    if (event.type === "assistant-answered" || event.type === "run-ended") this.#reportCost();
  }

  #reportCost(): void {
    const agents = this.#tree?.totals().agents ?? [];
    const costUsd = agents.reduce((sum, { totals }) => sum + (totals.costUsd ?? 0), 0);
    this.#options.report({ type: "status-changed", status: { costUsd } });
  }

  #endTurn(outcome: Exclude<PromptOutcome, { outcome: "withdrawn" }>): void {
    const { report } = this.#options;
    this.#turn = undefined;
    this.#keepUnfinished(outcome.isInterrupted);
    const ending = outcome.outcome === "ended" ? outcome.ending : undefined;
    const status = ending?.status ?? (outcome.isInterrupted ? "stopped" : "failed");
    const reason =
      outcome.outcome === "ended"
        ? describeEnding(outcome.ending)
        : describeError(outcome.error.cause ?? outcome.error.message);
    const isShown = reason !== undefined && status !== "stopped" && status !== "completed";
    if (ending?.reason === "nothing_to_compact") report({ type: "notice", level: "info", text: ending.text });
    report({ type: "turn-ended", outcome: isShown ? { status, error: reason } : { status } });
  }

  /** An answer that was interrupted is not part of the conversation; the agent learns what of it was read. */
  #keepUnfinished(isInterrupted: boolean): void {
    const text = this.#unfinished.trim();
    this.#unfinished = "";
    if (isInterrupted && text !== "")
      this.#tree?.addAside?.(
        `<system-reminder>\nThe person interrupted your last answer. This is the end of what they had read of it:\n${escapeControlTags(text.slice(-maxUnfinished))}\n</system-reminder>`,
      );
  }

  #workflowChanged({ taskId, change }: Extract<AgentEvent, { type: "workflow-changed" }>): void {
    const before = this.#workflows.get(taskId);
    const run = change.type === "started" ? change.state : before && foldWorkflow(before, change);
    if (run === undefined) return;
    if (change.type === "ended") this.#workflows.delete(taskId);
    else this.#workflows.set(taskId, run);
    this.#options.report({ type: "workflow-changed", change, run });
  }

  #commandChanged(view: BackgroundCommand): void {
    // Those of a child end with it, and it reads what becomes of them.
    const owner = this.#tree?.get(view.owner);
    if (owner !== undefined && owner.id !== mainAgentId) return;
    const { id, state, command = view.description, exitCode, startedAt, endedAt = view.lastSignAt } = view;
    if (state === "running") return void this.#commands.set(id, view);
    if (!this.#commands.delete(id)) return;
    const ended = { command, state, durationMs: endedAt - startedAt };
    this.#options.report({
      type: "command-ended",
      command: exitCode === undefined ? ended : { ...ended, exitCode },
    });
  }

  async #showQuestion(asked: Extract<AgentEvent, { type: "question-asked" }>["question"]): Promise<void> {
    const question = await describeQuestion(asked, this.#options.directory);
    // It may have been answered or stopped while its diff was made.
    const isOpen = this.#tree?.questions().some(({ id }) => id === asked.id) ?? true;
    if (question === undefined || !isOpen) return;
    this.#shownQuestions.add(asked.id);
    this.#options.report({ type: "question-asked", question });
  }
}

const maxUnfinished = 4_000;

export function queuedMessage(prompt: QueuedPrompt): QueuedMessage {
  return { id: prompt.id, text: promptText(prompt) };
}

function promptText({ content }: Pick<QueuedPrompt, "content">): string {
  return textOf({ role: "user", content });
}

function shellCall({ id, command }: { readonly id: string; readonly command: string }): ToolCall {
  return { id, tool: "Bash", input: { command }, isPerson: true };
}

/** What went wrong and what to do about it. */
function describeEnding(ending: RunEnding): string | undefined {
  if (ending.error === undefined) return undefined;
  const again = ending.reason === "unauthorized" ? "Enter another key with /login." : undefined;
  const parts = [ending.error, endingAdvice(ending), again].filter((part) => part !== undefined);
  return parts.map((part) => (/[.!?]$/.test(part) ? part : `${part}.`)).join(" ");
}

export function describeError(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return isRetinueError(error) && error.advice !== undefined ? `${message} ${error.advice}` : message;
}

interface TrackerOptions {
  readonly colourOf: (agentType: string) => string | undefined;
  /** What has to be added to the clock of tasks to get the time of day. */
  readonly clockOffset: number;
  readonly changed: (agent: AgentSnapshot) => void;
  readonly fileName: (file: string) => string;
}

/** The child agents of a session as the terminal shows them, made from their events. */
class AgentTracker {
  readonly #options: TrackerOptions;
  readonly #activities = new Map<string, string>();
  readonly #watchers = new Map<string, Set<(entry: AgentEntry) => void>>();

  constructor(options: TrackerOptions) {
    this.#options = options;
  }

  onEvent(event: RunEvent, state: TaskState): void {
    this.#noteActivity(event, state.id);
    if (event.type !== "model-streamed" && event.type !== "call-progressed") this.#pass(event, state);
    if (isVisible(event)) this.#options.changed(this.snapshot(state));
  }

  watch(agentId: string, listener: (entry: AgentEntry) => void): () => void {
    const watchers = this.#watchers.get(agentId) ?? new Set();
    watchers.add(listener);
    this.#watchers.set(agentId, watchers);
    return () => void watchers.delete(listener);
  }

  snapshot(state: TaskState): AgentSnapshot {
    const { clockOffset, colourOf } = this.#options;
    const colour = colourOf(state.agentType);
    return {
      id: state.id,
      parentId: state.parentId,
      depth: state.depth,
      name: state.name ?? state.agentType,
      description: state.description,
      state: state.status,
      isBackground: state.background,
      activity: this.#activityOf(state),
      tokens: contextTokens(state.usage) + state.usage.outputTokens,
      startedAt: state.startedAt + clockOffset,
      callId: state.callId,
      colour,
      costUsd: state.costUsd,
      endedAt: state.endedAt === undefined ? undefined : state.endedAt + clockOffset,
      ...reasonOf(state),
    };
  }

  /** The call with its file or command, while there is one; else what the task says of itself. */
  #activityOf({ id, activity, waitingForQuota }: TaskState): string {
    if (waitingForQuota !== undefined) return `waiting-for-quota ${untilText(waitingForQuota.until)}`;
    return this.#activities.get(id) ?? activity;
  }

  #noteActivity(event: RunEvent, id: string): void {
    if (event.type === "call-started") {
      const call = toCall(event.call);
      this.#activities.set(id, `${call.tool} ${callSubject(call, this.#options.fileName)}`.trim());
    } else if (event.type === "model-streamed" && event.event.type === "text-delta")
      this.#activities.set(id, "writing");
    else if (event.type !== "call-progressed" && event.type !== "model-streamed") this.#activities.delete(id);
  }

  #pass(event: RunEvent, state: TaskState): void {
    const watchers = this.#watchers.get(state.id);
    if (watchers === undefined || watchers.size === 0) return;
    for (const entry of entriesOf(event)) for (const watcher of watchers) watcher(entry);
  }
}

/** Streaming changes nothing that is shown of an agent, but that it writes. */
function isVisible(event: RunEvent): boolean {
  return event.type !== "model-streamed" || event.event.type === "block-started";
}

function reasonOf({ ending }: TaskState): { readonly reason?: string } {
  if (ending === undefined || ending.status === "completed") return {};
  return { reason: stopReasons.get(ending.reason) ?? ending.error ?? ending.reason.replaceAll(/[-_]/g, " ") };
}

const stopReasons: ReadonlyMap<string, string> = new Map([
  ["stopped-by-parent", "interrupted with the turn"],
  ["stopped-by-user", "you stopped it"],
  ["interrupted", "the session ended; it can be resumed"],
]);

function entriesOf(event: RunEvent): readonly AgentEntry[] {
  switch (event.type) {
    case "assistant-answered":
      return event.message.content.flatMap((block): AgentEntry[] => {
        if (block.type === "text" && "text" in block) return [{ type: "text", text: String(block.text) }];
        return block.type === "tool_use" && "input" in block
          ? [{ type: "call", call: { id: String(block.id), tool: String(block.name), input: block.input } }]
          : [];
      });
    case "call-finished":
      return [{ type: "result", callId: event.call.id, result: toResult(event) }];
    case "user-added":
      return event.origin === "prompt" || event.origin === "message"
        ? [{ type: "prompt", text: textOf(event.message) }]
        : [];
    case "run-ended":
      return event.ending.status === "completed"
        ? []
        : [{ type: "ended", text: event.ending.error ?? event.ending.status }];
    default:
      return [];
  }
}
