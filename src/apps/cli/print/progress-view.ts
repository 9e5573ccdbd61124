import type { RunEnding, RunEvent } from "../../../conversation/run-event.ts";
import { contextTokens } from "../../../conversation/usage.ts";
import type { RunPlan } from "../../../planning/run-plan.ts";
import type { TaskEvent } from "../../../tasks/task-manager.ts";
import type { TaskState } from "../../../tasks/task-state.ts";
import type { CliHost } from "../cli-host.ts";
import { createPaint } from "../views/colour.ts";
import { plural } from "../views/diagnostic-view.ts";
import { stripControlCharacters } from "../views/text-width.ts";
import { describeCall } from "./describe-call.ts";

/** What a person at a terminal sees of a run before its result; on stderr, so that stdout stays the result alone. */
export interface ProgressView {
  begin(plan: RunPlan): void;
  show(event: RunEvent): void;
  showChild(news: TaskEvent): void;
  end(ending: RunEnding): void;
}

export function createProgressView({ stderr }: CliHost, reported: ReadonlySet<string> = new Set()): ProgressView {
  const paint = createPaint(stderr.isColourAllowed);
  const say = (text: string): void => stderr.write(`${paint.dim(stripControlCharacters(text))}\n`);
  return {
    begin(plan) {
      for (const note of plan.notes) if (!reported.has(note)) say(`note: ${note}`);
    },
    show(event) {
      if (event.type === "model-retried") {
        say(`the model did not answer (${event.code}); trying again in ${Math.ceil(event.delayMs / 1000)} s`);
      }
      if (event.type === "context-compacted")
        say(`the conversation was compacted from ${event.preTokens} to ${event.postTokens} tokens`);
      if (!stderr.isTerminal) return;
      if (event.type === "call-started") say(`· ${describeCall(event.call)}`);
      if (event.type === "call-finished" && event.denied !== undefined) say(`  refused: ${event.denied}`);
    },
    showChild({ event, state }) {
      if (!stderr.isTerminal) return;
      const line = describeChild(event, state);
      if (line !== undefined) say(`[${state.agentType} ${state.description}] ${line}`);
    },
    end(ending) {
      if (ending.error !== undefined) stderr.write(`${paint.error("retinue:")} ${stripControlCharacters(ending.error)}\n`);
      if (ending.denials.length > 0) stderr.write(`${stripControlCharacters(describeDenials(ending))}\n`);
    },
  };
}

/** One line for each thing worth knowing of a child. */
function describeChild(
  event: RunEvent,
  { startedAt, endedAt, toolUses, usage }: TaskState,
): string | undefined {
  if (event.type === "call-started") return `· ${describeCall(event.call)}`;
  if (event.type === "call-finished" && event.denied !== undefined) return `refused: ${event.denied}`;
  if (event.type === "run-stalled")
    return `no sign of life for ${Math.round(event.silentMs / 1000)} s${event.stops ? "; it is stopped" : ""}`;
  if (event.type === "loop-noticed")
    return `${event.call.name}: the same calls ${event.times} times with the same results`;
  if (event.type === "context-compacted")
    return `compacted from ${event.preTokens} to ${event.postTokens} tokens`;
  if (event.type !== "run-ended") return undefined;
  const count = contextTokens(usage) + usage.outputTokens;
  const tokens = count === 0 ? "" : ` ${plural(count, "token")},`;
  const seconds = (((endedAt ?? startedAt) - startedAt) / 1000).toFixed(1);
  return `${event.ending.status}: ${plural(toolUses, "call")},${tokens} ${seconds} s`;
}

function describeDenials({ denials }: RunEnding): string {
  const tools = [...new Set(denials.map(({ call }) => call.name))].join(",");
  const count = denials.length === 1 ? "1 call was" : `${denials.length} calls were`;
  return `${count} not allowed; unless a rule or the definition denies it, --allowedTools "${tools}" allows it.`;
}
