import type { FiredEvent } from "@retinue/config/hooks/hook-input.ts";
import { blockEffects, type HookAnswer, type HookReading } from "./hook-answer.ts";

/** What one hook said, and whether its failure may be passed over. */
export interface HookResult {
  readonly name: string;
  readonly reading: HookReading;
  readonly toleratesFailure: boolean;
}

interface CommonOutcome {
  readonly reason: string;
  /** Text for the model, of all hooks. */
  readonly context?: string;
  /** The run is to end, with this reason. */
  readonly stop?: string;
  /** For the person. */
  readonly systemMessages: readonly string[];
  /** Hooks that did not work, each as one sentence. */
  readonly failures: readonly string[];
}

/** About a call. `none`: no hook decides, the rules do. */
export interface CallOutcome extends CommonOutcome {
  readonly type: "allow" | "ask" | "deny" | "none";
  readonly updatedInput?: Readonly<Record<string, unknown>>;
  /** Of all hooks that allow, where none is stricter. */
  readonly updatedPermissions?: readonly unknown[];
}

/** About any other event. */
export interface EventOutcome extends CommonOutcome {
  readonly blocked: boolean;
  readonly updatedOutput?: string;
}

export type HookOutcome<Event extends FiredEvent = FiredEvent> = Event extends
  | "PreToolUse"
  | "PermissionRequest"
  ? CallOutcome
  : EventOutcome;

/**
 * Several hooks, one call: the strictest word counts, a failed guard being a refusal. All contexts are joined. The
 * first changed input counts; another that differs is reported, because each hook has seen only the original.
 */
export function aggregateCall(results: readonly HookResult[]): CallOutcome {
  const answers = answersOf(results);
  const broken = results.filter(
    ({ reading, toleratesFailure }) => reading.type === "failed" && !toleratesFailure,
  );
  const type = broken.length > 0 ? "deny" : strictest(answers);
  const reasons =
    broken.length > 0
      ? [...reasonsOf(answers, "deny"), ...broken.map(brokenGuard)]
      : reasonsOf(answers, type);
  const changes = results.flatMap(({ name, reading }) =>
    reading.type === "answer" && reading.answer.updatedInput !== undefined
      ? [{ name, input: reading.answer.updatedInput }]
      : [],
  );
  const [first, ...others] = changes;
  const ignored = others
    .filter(({ input }) => JSON.stringify(input) !== JSON.stringify(first?.input))
    .map(
      ({ name }) =>
        `The ${name} changed the input too; only the first change is used, that of the ${first?.name}.`,
    );
  const updates =
    type === "allow" ? answers.flatMap(({ updatedPermissions }) => updatedPermissions ?? []) : [];
  return {
    type,
    ...common(results, reasons),
    ...(updates.length === 0 ? {} : { updatedPermissions: updates }),
    failures: [...failuresOf(results), ...ignored],
    ...(first === undefined || type === "deny" ? {} : { updatedInput: first.input }),
  };
}

/** One block blocks; its reason, or all of them, is what the model or the user is notified. */
export function aggregateEvent(results: readonly HookResult[]): EventOutcome {
  const answers = answersOf(results);
  const blocking = answers.filter(({ blocks }) => blocks === true);
  const changed = answers.find(({ updatedOutput }) => updatedOutput !== undefined)?.updatedOutput;
  return {
    blocked: blocking.length > 0,
    ...common(
      results,
      blocking.flatMap(({ reason }) => reason ?? []),
    ),
    ...(changed === undefined ? {} : { updatedOutput: changed }),
  };
}

export function aggregate(event: FiredEvent, results: readonly HookResult[]): CallOutcome | EventOutcome {
  return blockEffects[event] === "deny" ? aggregateCall(results) : aggregateEvent(results);
}

function common(results: readonly HookResult[], reasons: readonly string[]): CommonOutcome {
  const answers = answersOf(results);
  const contexts = answers.flatMap(({ context }) => context ?? []);
  const stop = answers.find((answer) => answer.stop !== undefined)?.stop;
  return {
    reason: [...new Set(reasons)].join("\n"),
    ...(contexts.length === 0 ? {} : { context: contexts.join("\n") }),
    stop,
    systemMessages: answers.flatMap(({ systemMessage }) => systemMessage ?? []),
    failures: failuresOf(results),
  };
}

function answersOf(results: readonly HookResult[]): readonly HookAnswer[] {
  return results.flatMap(({ reading }) => (reading.type === "answer" ? [reading.answer] : []));
}

function failuresOf(results: readonly HookResult[]): readonly string[] {
  return results.flatMap(({ name, reading }) =>
    reading.type === "failed" ? [`The ${name} failed: ${reading.reason}.`] : [],
  );
}

const byStrictness = ["deny", "ask", "allow"] as const;

function strictest(answers: readonly HookAnswer[]): CallOutcome["type"] {
  return byStrictness.find((verdict) => answers.some((answer) => answer.verdict === verdict)) ?? "none";
}

function reasonsOf(answers: readonly HookAnswer[], type: CallOutcome["type"]): readonly string[] {
  return answers.flatMap(({ verdict, reason }) => (verdict === type ? (reason ?? []) : []));
}

function brokenGuard({ name, reading }: HookResult): string {
  const why = reading.type === "failed" ? reading.reason : "";
  return `the ${name} failed, and a failing guard blocks the call: ${why}`;
}
