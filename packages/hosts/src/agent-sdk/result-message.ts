import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { createTreeFold, type EventSource, mainAgentId } from "@retinue/core/conversation/agent-event.ts";
import type { ToolUseBlock } from "@retinue/core/conversation/message.ts";
import type { RunEnding, RunEvent } from "@retinue/core/conversation/run-event.ts";
import { spentRecord } from "@retinue/core/conversation/spent-record.ts";
import { addUsage, noUsage, type Usage } from "@retinue/core/conversation/usage.ts";
import type { ModelFacts } from "../../../../src/model.ts";
import { answerFailureOf, isApiFailure } from "./api-failure.ts";
import type { DeferredCall } from "./host-hooks.ts";
import { type SdkMessage, sdkUsage, syntheticAnswer } from "./sdk-messages.ts";
import { noSubagents, type SubagentStats } from "./subagent-stats.ts";

interface ModelSum {
  readonly usage: Usage;
  readonly cost: number;
  readonly searches: number;
}

/** What the session has used so far, by model, children included. */
export interface SessionTotals {
  /** `source` is the child it belongs to; absent for the main agent. */
  add(event: RunEvent, source?: EventSource): void;
  /** Limits of a model, shown beside its sums. */
  know(facts: Pick<ModelFacts, "id" | "contextWindow" | "maxOutputTokens">): void;
  cost(): number;
  /** Lines that edits of all agents have added and removed. */
  lines(): { readonly added: number; readonly removed: number };
  modelUsage(): JsonRecord;
  /** The same by agent, each by model; undefined where there is none but the main agent. */
  agentUsage(main: RunEnding["status"]): readonly JsonRecord[] | undefined;
  /** The same for what came after the last call of this; a result has both. */
  takeNewUsage(): JsonRecord;
}

export function createSessionTotals(): SessionTotals {
  const sums = new Map<string, ModelSum>();
  let fresh = new Map<string, ModelSum>();
  const lines = { added: 0, removed: 0 };
  const tree = createTreeFold();
  const limits = new Map<string, Pick<ModelFacts, "contextWindow" | "maxOutputTokens">>();
  const describe = (counted: ReadonlyMap<string, ModelSum>): JsonRecord =>
    Object.fromEntries(
      [...counted].map(([model, sum]) => [model, describeSum(model, sum, limits.get(model))]),
    );
  return {
    lines: () => lines,
    agentUsage(main) {
      const { agents } = tree.totals();
      if (agents.length < 2) return undefined;
      return agents.map(({ agentId, agentType, parentId, status, ...spent }) => ({
        agent_id: agentId,
        agent_type: agentType,
        parent_agent_id: parentId,
        // The result is written before the end of the main agent's run is counted.
        status: agentId === mainAgentId ? main : status,
        ...spentRecord(spent),
      }));
    },
    add(event, source = { agentId: mainAgentId }) {
      if (event.type !== "model-streamed") tree.add({ ...event, ...source });
      if (event.type === "call-finished" && !event.isError) countLines(event.call, lines);
      if (
        event.type !== "assistant-answered" &&
        event.type !== "context-compacted" &&
        event.type !== "answer-lost"
      )
        return;
      for (const counted of [sums, fresh]) {
        const before = counted.get(event.model) ?? { usage: noUsage, cost: 0, searches: 0 };
        counted.set(event.model, {
          usage: addUsage(before.usage, event.usage),
          cost: before.cost + (event.costUsd ?? 0),
          searches: before.searches + (event.type === "assistant-answered" ? countSearches(event) : 0),
        });
      }
    },
    know: ({ id, ...rest }) => void limits.set(id, rest),
    cost: () => [...sums.values()].reduce((sum, { cost }) => sum + cost, 0),
    modelUsage: () => describe(sums),
    takeNewUsage() {
      const taken = describe(fresh);
      fresh = new Map();
      return taken;
    },
  };
}

function describeSum(
  model: string,
  { usage, cost, searches }: ModelSum,
  limits: Pick<ModelFacts, "contextWindow" | "maxOutputTokens"> | undefined,
): JsonRecord {
  return {
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens,
    cacheReadInputTokens: usage.cacheReadTokens,
    cacheCreationInputTokens: usage.cacheWriteTokens,
    webSearchRequests: searches,
    costUSD: cost,
    contextWindow: limits?.contextWindow ?? 200_000,
    maxOutputTokens: limits?.maxOutputTokens ?? 32_000,
    thinkingTokens: 0,
    cacheCreationEphemeral5mInputTokens: usage.cacheWriteTokens,
    cacheCreationEphemeral1hInputTokens: 0,
    canonicalModel: model,
    costBasis: "list",
  };
}

/** As far as the call shows it: a file that Write replaces is not counted as removed. */
function countLines({ name, input }: ToolUseBlock, lines: { added: number; removed: number }): void {
  if (!isRecord(input) || (name !== "Edit" && name !== "Write")) return;
  const count = (text: unknown): number =>
    typeof text === "string" && text !== "" ? text.replace(/\n$/, "").split("\n").length : 0;
  lines.added += count(name === "Edit" ? input["new_string"] : input["content"]);
  lines.removed += name === "Edit" ? count(input["old_string"]) : 0;
}

function countSearches({ message }: Extract<RunEvent, { type: "assistant-answered" }>): number {
  return message.content.filter(
    (block) => block.type === "server_tool_use" && "name" in block && block.name === "web_search",
  ).length;
}

export interface ResultContext {
  readonly sessionId: string;
  readonly uuid: string;
  readonly totals: Pick<SessionTotals, "cost" | "modelUsage" | "takeNewUsage" | "agentUsage">;
  /** Children of the session so far. */
  readonly subagents?: SubagentStats;
  /** How often the model refused to answer in this turn. */
  readonly refusals?: number;
  /** The turn was stopped by the host. */
  readonly interrupted: boolean;
  /** Tools were running when it was. */
  readonly inTools: boolean;
  /** False: nothing could begin. */
  readonly hasStarted?: boolean;
  /** The ids that the host gave the prompts this answers. */
  readonly promptIds?: readonly string[];
  /** Where the prompt came from, where it was not the host. */
  readonly origin?: unknown;
  /** Prompts that wait for their turn. */
  readonly queued?: number;
  /** The call that a hook deferred. */
  readonly deferred?: DeferredCall | undefined;
  /** How many results came before this one. */
  readonly index?: number;
  /** What the session may spend, for the sentence about it. */
  readonly maxBudget?: number | undefined;
  /** Why the model stopped last. */
  readonly lastStop?: string | undefined;
  /** How long the first answer took. */
  readonly timing?: JsonRecord;
  /** Messages of the conversation that the turn had; zero where the model was not asked. */
  readonly turns?: number;
  /** The command of the session that answered in place of the model. */
  readonly localCommand?: string | undefined;
}

/** The message that ends a turn. A failure of the provider is a success with `is_error`, as programs expect it. */
export function resultMessage(ending: RunEnding, context: ResultContext): SdkMessage {
  const { totals } = ending;
  const { interrupted } = context;
  const agentUsage = context.totals.agentUsage(ending.status);
  const subtype = subtypeOf(ending, interrupted);
  const failure = answerFailureOf(ending);
  return {
    type: "result",
    subtype,
    is_error: isErrorEnding(ending, interrupted),
    ...(subtype === "success" && asksModel(ending) ? { api_error_status: failure?.status ?? null } : {}),
    api_error_type: failure?.type,
    api_error: failure?.cut,
    duration_ms: Math.round(totals.durationMs),
    duration_api_ms: Math.round(totals.modelMs),
    ...context.timing,
    num_turns: context.turns ?? turnsOf(ending),
    ...(subtype === "success" ? { result: resultText(ending) } : {}),
    stop_reason: stopReason(ending, context),
    session_id: context.sessionId,
    total_cost_usd: context.totals.cost(),
    usage: sdkUsage(totals.usage),
    modelUsage: context.totals.modelUsage(),
    agent_usage: agentUsage,
    result_index: context.index,
    model_usage_since_last_result: context.totals.takeNewUsage(),
    fast_mode_state: "off",
    fast_mode_disabled_reason: "sdk_opt_in_required",
    subagent_stats: context.subagents ?? noSubagents,
    safety_stops: context.refusals ?? 0,
    interrupted_agents: ending.interruptedAgents,
    permission_denials: permissionDenials(ending),
    receipt: ending.receipt,
    model_fallbacks: ending.fallbacks,
    structured_output: ending.output,
    ...(subtype === "success" ? {} : { errors: [errorOf(ending, context)] }),
    deferred_tool_use: context.deferred,
    ...(asksModel(ending) && context.hasStarted !== false
      ? { terminal_reason: terminalReason(ending, context) }
      : {}),
    local_command: context.localCommand,
    ...promptIdsOf(context),
    origin: context.origin,
    queued_turn_count: context.queued,
    uuid: context.uuid,
  };
}

function permissionDenials({ denials }: RunEnding): readonly JsonRecord[] {
  return denials.map(({ call: { name, id, input } }) => ({
    tool_name: name,
    tool_use_id: id,
    tool_input: input,
  }));
}

function promptIdsOf({ promptIds = [] }: ResultContext): JsonRecord {
  const last = promptIds.at(-1);
  return last === undefined ? {} : { user_message_uuid: last, user_message_uuids: promptIds };
}

/** The assistant message that reports a failure of the provider; undefined where there was none. */
export function failureMessage(
  ending: RunEnding,
  ids: { readonly sessionId: string; readonly uuid: string; readonly id: string },
): SdkMessage | undefined {
  const failure = answerFailureOf(ending);
  if (failure === undefined) return undefined;
  const stop = ending.reason === "refusal" ? "refusal" : "stop_sequence";
  return {
    ...syntheticAnswer(failure.text, ids, { stop_reason: stop, stop_sequence: "" }),
    error: failure.category,
    is_api_error_message: true,
    ...(failure.status === null ? {} : { api_error_status: failure.status }),
    api_error_type: failure.type,
    api_error: failure.cut,
  };
}

/** A command of the session was the whole turn. */
export const localReason = "local_command";

/** These answer a prompt without the model: commands of the session, and hooks that hold the prompt back. */
const answeredHere: ReadonlySet<string> = new Set(["prompt_blocked", "unknown_command", localReason]);

/** Whether a prompt never came to the model. */
export function isHeldBack(reason: string): boolean {
  return answeredHere.has(reason);
}

function asksModel({ reason }: RunEnding): boolean {
  return !answeredHere.has(reason);
}

/** A hook ended the run, which is an end like others. */
const hookStopped = "stopped_by_person";

/** What a run comes to as text; of a typed output that is its JSON. */
function resultText(ending: RunEnding): string {
  if (ending.reason === hookStopped) return "";
  if (ending.output !== undefined) return JSON.stringify(ending.output);
  const failure = answerFailureOf(ending);
  if (failure !== undefined) return failure.text;
  if (ending.status === "failed" && answeredHere.has(ending.reason)) return ending.error ?? "";
  return ending.text;
}

/** Whether a result with this ending is an error, and so the exit code. */
export function isErrorEnding(ending: RunEnding, interrupted: boolean): boolean {
  return subtypeOf(ending, interrupted) !== "success" || answerFailureOf(ending) !== undefined;
}

function subtypeOf(ending: RunEnding, interrupted: boolean): string {
  const { status, reason } = ending;
  if (reason === "max_turns") return "error_max_turns";
  if (reason === "max_budget") return "error_max_budget_usd";
  if (reason === "max_structured_output_retries") return "error_max_structured_output_retries";
  if (status === "completed" || answerFailureOf(ending) !== undefined || answeredHere.has(reason))
    return "success";
  return reason === hookStopped && !interrupted ? "success" : "error_during_execution";
}

/** Why a model stopped, where an ending says so. */
const modelStops: ReadonlySet<string> = new Set([
  "end_turn",
  "max_tokens",
  "stop_sequence",
  "refusal",
  "model_context_window_exceeded",
]);

function stopReason(ending: RunEnding, { lastStop, deferred }: ResultContext): string | null {
  if (deferred !== undefined) return "tool_deferred";
  const { reason, status } = ending;
  if (reason !== "refusal" && answerFailureOf(ending) !== undefined) return "stop_sequence";
  if (modelStops.has(reason)) return reason;
  if (answeredHere.has(reason)) return null;
  if (reason === "output_given") return lastStop ?? null;
  return status === "completed" ? "end_turn" : (lastStop ?? null);
}

/** A turn that was started and not answered counts. */
function turnsOf(ending: RunEnding): number {
  const isUnanswered = ending.reason === "max_turns" || isApiFailure(ending);
  return ending.totals.turns + (isUnanswered ? 1 : 0);
}

/** Limits in the short form that programs show; everything else as the runtime says it. */
function errorOf({ reason, error, status, totals }: RunEnding, { maxBudget }: ResultContext): string {
  if (reason === "max_turns") return `Reached maximum number of turns (${totals.turns})`;
  if (reason === "max_budget" && maxBudget !== undefined) return `Reached maximum budget ($${maxBudget})`;
  return error ?? `The run was ${status}.`;
}

/** Reasons of endings in the words that programs know. */
const terminalReasons: ReadonlyMap<string, string> = new Map([
  ["max_turns", "max_turns"],
  ["max_budget", "budget_exhausted"],
  ["max_total_tokens", "budget_exhausted"],
  ["context_full", "prompt_too_long"],
  ["context-too-long", "prompt_too_long"],
  ["prompt_too_large", "prompt_too_long"],
  ["max_structured_output_retries", "structured_output_retry_exhausted"],
  [hookStopped, "hook_stopped"],
]);

function terminalReason(ending: RunEnding, { interrupted, inTools, deferred }: ResultContext): string {
  if (deferred !== undefined) return "tool_deferred";
  if (interrupted) return inTools ? "aborted_tools" : "aborted_streaming";
  if (ending.status === "completed") return "completed";
  const isFailure = answerFailureOf(ending) !== undefined;
  return terminalReasons.get(ending.reason) ?? (isFailure ? "api_error" : "model_error");
}
