import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { contextTokens } from "@retinue/core/conversation/usage.ts";
import type { TaskState } from "../../../../../src/index.ts";
import { untilText } from "../../shared/debug-line.ts";
import { callSubject } from "../text/finished-call-rows.ts";
import { toCall, toResult } from "./run-events.ts";
import type { AgentEntry, AgentSnapshot } from "./terminal-session.ts";

export interface TrackerOptions {
  readonly colourOf: (agentType: string) => string | undefined;
  /** What has to be added to the clock of tasks to get the time of day. */
  readonly clockOffset: number;
  readonly changed: (agent: AgentSnapshot) => void;
  readonly fileName: (file: string) => string;
}

/** The child agents of a session as the terminal shows them, made from their events. */
export class AgentTracker {
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
        ? [{ type: "prompt", text: textOf(event.message.content) }]
        : [];
    case "run-ended":
      return event.ending.status === "completed"
        ? []
        : [{ type: "ended", text: event.ending.error ?? event.ending.status }];
    default:
      return [];
  }
}

function textOf(content: Extract<RunEvent, { type: "user-added" }>["message"]["content"]): string {
  if (typeof content === "string") return content;
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}
