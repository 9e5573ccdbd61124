import type { RunEnding, RunTotals } from "../../conversation/run-event.ts";
import { noUsage, wireUsage } from "../../conversation/usage.ts";
import { isRetinueError } from "../../foundation/retinue-error.ts";
import type { ModelFacts } from "../../runtime/session.ts";
import { apiFailureOf, isApiFailure } from "../agent-sdk/api-failure.ts";
import { modelStops, permissionDenials, resultText, terminalReasons } from "../agent-sdk/result-message.ts";
import { addSums, type ModelSum, type ModelTally } from "./model-tally.ts";
import type { MessageContext, OutputMessage } from "./output-messages.ts";

/** The last message of a run; with `--output-format json` the only one. */
export function resultMessage(
  ending: RunEnding,
  model: Pick<ModelFacts, "id" | "contextWindow" | "maxOutputTokens">,
  { sessionId, uuid }: MessageContext,
  children: ModelTally = new Map(),
  turns?: number,
): OutputMessage {
  const { totals } = ending;
  const subtype = subtypeOf(ending);
  const failure = apiFailureOf(ending);
  const sums = sumModels(totals, model.id, children);
  return {
    type: "result",
    subtype,
    is_error: subtype !== "success" || failure !== undefined,
    ...(failure === undefined ? {} : { api_error_status: failure.status }),
    duration_ms: Math.round(totals.durationMs),
    duration_api_ms: Math.round(totals.modelMs),
    num_turns: turns ?? totals.turns,
    result: failure?.text ?? resultText(ending),
    stop_reason: modelStops.has(ending.reason) ? ending.reason : null,
    terminal_reason: terminalReason(ending),
    session_id: sessionId,
    // Children may go on after the ending was made, so what was seen of them counts, as in `modelUsage`.
    total_cost_usd: children.size === 0 ? ((ending.tree ?? totals).costUsd ?? null) : costOfAll(sums),
    usage: wireUsage(totals.usage),
    modelUsage: modelUsage(sums, model),
    permission_denials: permissionDenials(ending),
    ...(ending.interruptedAgents === undefined ? {} : { interrupted_agents: ending.interruptedAgents }),
    ...(ending.output === undefined ? {} : { structured_output: ending.output }),
    ...(subtype === "success" ? {} : { errors: [ending.error ?? `The run was ${ending.status}.`] }),
    uuid: uuid(),
  };
}

/** The result of what failed before there was a run, or outside of it: programs that read JSON wait for one. */
export function failureMessage(error: unknown, { sessionId, uuid }: MessageContext): OutputMessage {
  const message = error instanceof Error ? error.message : String(error);
  const advice = isRetinueError(error) && error.advice !== undefined ? ` ${error.advice}` : "";
  return {
    type: "result",
    subtype: "error_during_execution",
    is_error: true,
    duration_ms: 0,
    duration_api_ms: 0,
    num_turns: 0,
    result: "",
    stop_reason: null,
    terminal_reason: isRetinueError(error) ? error.code : "error",
    session_id: sessionId,
    total_cost_usd: 0,
    usage: wireUsage(noUsage),
    modelUsage: {},
    permission_denials: [],
    errors: [`${message}${advice}`],
    uuid: uuid(),
  };
}

function subtypeOf(ending: RunEnding): string {
  const { status, reason } = ending;
  if (reason === "max_turns") return "error_max_turns";
  if (reason === "max_budget") return "error_max_budget_usd";
  if (reason === "max_structured_output_retries") return "error_max_structured_output_retries";
  return status === "completed" || isApiFailure(ending) ? "success" : "error_during_execution";
}

/** In the known words where there is one, else the code of the error. */
function terminalReason({ status, reason }: RunEnding): string {
  if (status === "completed") return "completed";
  return terminalReasons.get(reason) ?? reason;
}

/** The main agent's model first; those of children add to it or are next to it. */
function sumModels({ usage, costUsd: cost }: RunTotals, id: string, children: ModelTally): ModelTally {
  const main: ModelSum = { usage, ...(cost === undefined ? {} : { cost }) };
  const same = children.get(id);
  return new Map([
    [id, same === undefined ? main : addSums(main, same)],
    ...[...children].filter(([name]) => name !== id),
  ]);
}

function costOfAll(sums: ModelTally): number | null {
  const costs = [...sums.values()].map(({ cost }) => cost);
  return costs.every((cost) => cost !== undefined) ? costs.reduce((sum, cost) => sum + cost, 0) : null;
}

function modelUsage(
  sums: ModelTally,
  { id, contextWindow, maxOutputTokens }: Pick<ModelFacts, "id" | "contextWindow" | "maxOutputTokens">,
): Readonly<Record<string, object>> {
  return Object.fromEntries(
    [...sums].map(([name, sum]) => [
      name,
      { ...wireSum(sum), ...(name === id ? { contextWindow, maxOutputTokens } : {}) },
    ]),
  );
}

function wireSum({ usage, cost }: ModelSum) {
  return {
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens,
    cacheReadInputTokens: usage.cacheReadTokens,
    cacheCreationInputTokens: usage.cacheWriteTokens,
    costUSD: cost ?? null,
  };
}
