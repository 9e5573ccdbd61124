import { plural } from "@retinue/base/foundation/diagnostic.ts";
import { receiptText } from "@retinue/core/conversation/receipt.ts";
import type { RunEnding, RunEvent } from "@retinue/core/conversation/run-event.ts";
import { contextTokens } from "@retinue/core/conversation/usage.ts";
import type { TreeFacts } from "@retinue/core/kernel/agent-tree.ts";
import type { RunPlan } from "@retinue/core/kernel/session.ts";
import type { AgentState } from "@retinue/core/protocol/agent-state.ts";
import { apiFailureOf } from "../agent-sdk/api-failure.ts";
import type { CliHost, CliOutput } from "../shared/cli-host.ts";
import { fallbackSentence, quotaSentence, retrySentence } from "../shared/debug-line.ts";
import { describeCall } from "../shared/describe-call.ts";
import { endingAdvice, refusalForPeople } from "../shared/ending-advice.ts";
import { createPaint } from "../shared/paint.ts";
import { harmlessLines, stripControlCharacters } from "../shared/strip-control-characters.ts";

/** What is printed of a session, in one of the output formats. */
export interface Printer {
  begin(): void;
  show(event: RunEvent): void;
  /** What a child agent does; absent where nothing of that is shown. */
  readonly showChild?: ((event: RunEvent, stateOf: () => AgentState | undefined) => void) | undefined;
  end(ending: RunEnding): void;
  /** Something went wrong outside the run; where JSON is printed, that is a result too. */
  fail(error: unknown): void;
}

/** `reported` is what the person has been shown before; the notes of the plan do not say it again. */
export function createTextPrinter(
  host: CliHost,
  session: Pick<TreeFacts, "plan">,
  {
    reported = new Set(),
    budget,
  }: { readonly reported?: ReadonlySet<string>; readonly budget: number | undefined },
): Printer {
  const progress = createProgressView(host, reported);
  return {
    begin: () => progress.begin(session.plan),
    show: progress.show,
    showChild: progress.showChild,
    fail: () => undefined,
    end(ending) {
      progress.end(ending);
      const failure = apiFailureOf(ending);
      if (ending.output !== undefined) host.stdout.write(`${JSON.stringify(ending.output)}\n`);
      else if (ending.reason === "max_turns")
        host.stdout.write(`Error: Reached max turns (${ending.totals.turns})\n`);
      else if (ending.reason === "max_budget" && budget !== undefined)
        host.stdout.write(`Error: Exceeded USD budget (${budget})\n`);
      else if (failure !== undefined) host.stdout.write(`${answerText(failure.text, host.stdout)}\n`);
      else if (ending.text !== "") host.stdout.write(`${answerText(ending.text.trimEnd(), host.stdout)}\n`);
    },
  };
}

/** What a model says: as it is for programs, and for a terminal without what that would act on. */
export function answerText(text: string, { isTerminal }: CliOutput): string {
  return isTerminal ? harmlessLines(text) : text;
}

/** What a person at a terminal sees of a run before its result; on stderr, so that stdout stays the result alone. */
interface ProgressView {
  begin(plan: RunPlan): void;
  show(event: RunEvent): void;
  /** Absent where it is not shown. */
  readonly showChild: Printer["showChild"];
  end(ending: RunEnding): void;
}

export function createProgressView(
  { stderr }: CliHost,
  reported: ReadonlySet<string> = new Set(),
): ProgressView {
  const paint = createPaint(stderr.isColourAllowed);
  const print = (text: string): void => stderr.write(`${paint.dim(stripControlCharacters(text))}\n`);
  return {
    begin(plan) {
      for (const note of plan.notes) if (!reported.has(note)) print(`note: ${note}`);
    },
    show(event) {
      if (event.type === "model-retried") print(retrySentence(event));
      if (event.type === "model-fell-back") print(fallbackSentence(event));
      if (event.type === "quota-waiting" || event.type === "quota-renewed") print(quotaSentence(event));
      if (event.type === "context-compacted")
        print(`the conversation was compacted from ${event.preTokens} to ${event.postTokens} tokens`);
      if (!stderr.isTerminal) return;
      if (event.type === "call-started") print(`· ${describeCall(event.call)}`);
      if (event.type === "call-finished" && event.denied !== undefined)
        print(`  refused: ${refusalForPeople(event.denied)}`);
    },
    // Where no person watches, only what keeps the whole run waiting or changes who answers.
    showChild(event, stateOf) {
      if (!stderr.isTerminal && !remarkable.has(event.type)) return;
      const state = stateOf();
      const line = state === undefined ? undefined : describeChild(event, state);
      if (line !== undefined) print(`[${state?.agentType} ${state?.description}] ${line}`);
    },
    end(ending) {
      if (ending.error !== undefined)
        stderr.write(`${paint.error("retinue:")} ${stripControlCharacters(ending.error)}\n`);
      const advice = ending.error === undefined ? undefined : endingAdvice(ending);
      if (advice !== undefined) stderr.write(`${stripControlCharacters(advice)}\n`);
      if (ending.receipt?.checks.some(({ kind }) => kind === "command") === true)
        stderr.write(`${stripControlCharacters(receiptText(ending.receipt))}\n`);
      if (ending.denials.length > 0) stderr.write(`${stripControlCharacters(describeDenials(ending))}\n`);
    },
  };
}

const remarkable: ReadonlySet<RunEvent["type"]> = new Set([
  "model-fell-back",
  "quota-waiting",
  "quota-renewed",
]);

/** One line for each thing worth knowing of a child. */
function describeChild(
  event: RunEvent,
  { startedAt, endedAt, toolUses, usage }: AgentState,
): string | undefined {
  if (event.type === "model-fell-back") return fallbackSentence(event);
  if (event.type === "quota-waiting" || event.type === "quota-renewed") return quotaSentence(event);
  if (event.type === "call-started") return `· ${describeCall(event.call)}`;
  if (event.type === "call-finished" && event.denied !== undefined)
    return `refused: ${refusalForPeople(event.denied)}`;
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
  const asked = denials.filter(({ reason }) => askedAbout.test(reason));
  const others = denials.filter(({ reason }) => !askedAbout.test(reason));
  const [setting] = askedAbout.exec(asked[0]?.reason ?? "") ?? [];
  const started = asked.length === 1 ? "1 agent was" : `${asked.length} agents were`;
  const tools = [...new Set(others.map(({ call }) => call.name))].join(",");
  const count = others.length === 1 ? "1 call was" : `${others.length} calls were`;
  return [
    ...(asked.length === 0
      ? []
      : [`${started} not started: ${setting}. Raise that, or let the question wait: --approvals wait.`]),
    ...(others.length === 0
      ? []
      : [
          `${count} not allowed; unless a rule or the definition denies it, --allowedTools "${tools}" allows it.`,
        ]),
  ].join("\n");
}

/** No rule answers a question about a quote. */
const askedAbout = /settings ask above [^;]{1,40} \(quotes\.askAbove\w+\)/;
