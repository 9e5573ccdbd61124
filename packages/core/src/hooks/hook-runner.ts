// @io
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type FiredEvent,
  type HookPayloads,
  type HookSituation,
  hookInput,
  hookSubject,
} from "@retinue/config/hooks/hook-input.ts";
import {
  describeHook,
  type HookHandler,
  type MatchSubject,
  matchesQuestion,
  type SelectedHook,
  type SourcedHookRule,
  selectHooks,
} from "@retinue/config/hooks/hook-rule.ts";
import { matchSubject, type SubjectMatch } from "@retinue/config/hooks/match-subject.ts";
import { aggregate, type HookOutcome, type HookResult } from "./aggregate.ts";
import { cutTexts, type HookAnswer, type HookReading } from "./hook-answer.ts";
import { type HookFunction, type RunContext, runFunction, runHandler } from "./run-handler.ts";
import type { HttpHookLimits } from "./run-http-hook.ts";

/** Puts a question to a model, for prompt and agent hooks. */
export type AskModel = (
  prompt: string,
  options: { readonly kind: "prompt" | "agent"; readonly model?: string; readonly signal: AbortSignal },
) => Promise<string>;

/** Calls a tool of an MCP server; gives its text. */
export type CallServerTool = (
  call: { readonly server: string; readonly tool: string; readonly input: unknown },
  options: { readonly signal: AbortSignal },
) => Promise<string>;

/** What a hook said that runs beside the work; `wakes`: the model is to be reported even when it has ended its turn. */
export interface LateAnswer {
  readonly name: string;
  readonly context?: string;
  readonly systemMessage?: string;
  readonly failure?: string;
  readonly wakes: boolean;
}

/** Follows the hooks of settings, plugins and definitions. */
export type HookWatch = (hook: {
  readonly event: FiredEvent;
  /** What the matcher was compared with. */
  readonly subject: string | undefined;
}) => (reading: HookReading) => void;

export interface HookRunnerOptions {
  /** Already limited by trust and by what an organisation permits. */
  readonly rules: readonly SourcedHookRule[];
  readonly functions?: readonly HookFunction[];
  readonly session: Pick<HookSituation, "sessionId" | "transcript">;
  /** The folder the session was started for; `CLAUDE_PROJECT_DIR`. */
  readonly projectDirectory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where hooks of `SessionStart` leave variables; `CLAUDE_ENV_FILE`. */
  readonly environmentFile?: string;
  readonly http?: HttpHookLimits;
  readonly ask?: AskModel;
  readonly callTool?: CallServerTool;
  /** Guards that fail let calls through and are only reported. */
  readonly warnOnly?: boolean;
  /** Where texts that are too long are kept whole. */
  readonly outputDirectory?: string;
  readonly defaultLimitMs?: number;
  /** How long a command may take to end after the request. */
  readonly graceMs?: number;
  readonly newId: () => string;
  readonly onLate?: (answer: LateAnswer) => void;
  /** Shows each configured hook when it starts and when it has ended; functions show themselves. */
  readonly watch?: HookWatch;
  /** Around the hooks of one event, where there are some. */
  readonly measure?: <Outcome>(event: FiredEvent, run: () => Promise<Outcome>) => Promise<Outcome>;
}

export interface FireOptions extends Omit<HookSituation, "sessionId" | "transcript"> {
  readonly signal: AbortSignal;
  /** Whether the call at hand falls under a permission rule. */
  readonly meetsCondition?: (rule: string) => boolean;
}

export interface HookRunner extends AsyncDisposable {
  /** Whether any hook could receive this event; spares the work of reporting it. */
  receives(event: FiredEvent): boolean;
  /** Runs all matching hooks together and puts their answers together. Never rejects. */
  fire<Event extends FiredEvent>(
    event: Event,
    payload: HookPayloads[Event],
    options: FireOptions,
  ): Promise<HookOutcome<Event>>;
  /** Takes in hooks that came with a skill; of these, `once` is respected. */
  add(rules: readonly SourcedHookRule[]): void;
}

/** The agent id that hooks of the main agent's own definition carry. */
const mainAgentId = "main";

export function createHookRunner(options: HookRunnerOptions): HookRunner {
  const end = new AbortController();
  const late = new Set<Promise<void>>();
  const match = rememberMatches();
  const rules = [...options.rules];
  // Hooks of skills that fire once, and whether they have.
  const single = new Map<HookHandler, boolean>();
  const received = new Set([
    ...options.rules.map(({ hook }) => hook.event),
    ...(options.functions ?? []).map(({ event }) => event),
  ]);

  async function fire(event: FiredEvent, payload: HookPayloads[FiredEvent], fired: FireOptions) {
    const { signal, meetsCondition, ...situation } = fired;
    const input = hookInput(event, payload as never, { ...options.session, ...situation });
    const subject = hookSubject(event, payload as never);
    const agentId = situation.agentId ?? mainAgentId;
    const question = { event, subject, agentId, meetsCondition };
    const { selected: matching, diagnostics } = selectHooks(rules, question, match);
    const selected = matching.filter(({ handler }) => single.get(handler) !== true);
    for (const { handler } of selected) if (single.has(handler)) single.set(handler, true);
    const functions = (options.functions ?? []).filter(
      (each) => each.event === event && matchesQuestion(each.matcher, question, match) !== "no-match",
    );
    const context: RunContext = {
      event,
      input,
      cwd: situation.cwd,
      signal: AbortSignal.any([signal, end.signal]),
      sessionSignal: end.signal,
      options,
      lateCount: () => late.size,
      followLate: (work) => follow(work, late),
    };
    const run = () => runAll(selected, functions, { ...context, subject });
    const measure = selected.length + functions.length > 0 ? options.measure : undefined;
    const outcome = aggregate(event, await (measure === undefined ? run() : measure(event, run)));
    return diagnostics.length === 0
      ? outcome
      : { ...outcome, failures: [...outcome.failures, ...diagnostics] };
  }

  return {
    receives: (event) => received.has(event),
    // The outcome's shape follows from the event, which the general function below the surface cannot say.
    fire: fire as HookRunner["fire"],
    add(added) {
      for (const rule of added) {
        rules.push(rule);
        received.add(rule.hook.event);
        if (rule.hook.handler.once === true) single.set(rule.hook.handler, false);
      }
    },
    async [Symbol.asyncDispose]() {
      end.abort();
      await Promise.all(late);
    },
  };
}

/** Keeps work that outlives its event until it has ended. */
function follow(work: Promise<void>, late: Set<Promise<void>>): void {
  const tracked = work.catch(() => undefined).finally(() => late.delete(tracked));
  late.add(tracked);
}

function runAll(
  selected: readonly SelectedHook[],
  functions: readonly HookFunction[],
  context: RunContext & { readonly subject: string | undefined },
): Promise<HookResult[]> {
  const { event, options, subject } = context;
  const watched = async (hook: SelectedHook): Promise<HookReading> => {
    const ended = options.watch?.({ event, subject });
    const reading = await runHandler(hook, context);
    ended?.(reading);
    return reading;
  };
  const toleratesAll = event !== "PreToolUse" || options.warnOnly === true;
  return Promise.all([
    ...selected.map(
      async (hook): Promise<HookResult> => ({
        name: describeHook(hook),
        reading: await boundTexts(await watched(hook), options),
        toleratesFailure: toleratesAll || hook.handler.onFailure === "continue",
      }),
    ),
    ...functions.map(
      async (each): Promise<HookResult> => ({
        name: `function hook ${JSON.stringify(each.name ?? each.run.name)}`,
        reading: await boundTexts(await runFunction(each, context), options),
        toleratesFailure: toleratesAll,
      }),
    ),
  ]);
}

/** The same few names are compared with the same few matchers all day. */
function rememberMatches(): MatchSubject {
  const known = new Map<string, SubjectMatch>();
  return (matcher, subject, names) => {
    const key = `${matcher ?? ""}\0${subject}\0${names === undefined ? "tool" : ""}`;
    const found = known.get(key) ?? matchSubject(matcher, subject, names);
    if (known.size < 10_000) known.set(key, found);
    return found;
  };
}

/** A text that is too long is shortened, and its whole kept in a file where there is a place for it. */
async function boundTexts(
  reading: HookReading,
  { outputDirectory, newId }: Pick<HookRunnerOptions, "outputDirectory" | "newId">,
): Promise<HookReading> {
  if (reading.type === "failed") return reading;
  const fileFor = (field: string): string | undefined =>
    outputDirectory === undefined ? undefined : join(outputDirectory, `hook-${newId()}-${field}.txt`);
  const { answer, files } = cutTexts(reading.answer, fileFor);
  try {
    for (const { file, text } of files) {
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await writeFile(file, text, { mode: 0o600 });
    }
  } catch {
    const cut: HookAnswer = cutTexts(reading.answer, () => undefined).answer;
    return { type: "answer", answer: cut };
  }
  return { type: "answer", answer };
}
