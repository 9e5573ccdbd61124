import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { abortable, settledSoon } from "@retinue/base/foundation/abortable.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { WorkflowPhase } from "@retinue/config/workflows/workflow-meta.ts";
import type { WorkflowChange, WorkflowStep } from "../protocol/workflow-state.ts";
import { type ContentKey, createContentKeys, describeChange, type StepShape } from "./content-key.ts";
import type { ScriptAnswer, ScriptError, ScriptMessage, StepOptions } from "./script-message.ts";
import type { RealmEvents, ScriptBody, ScriptRealm } from "./start-realm.ts";
import type { StepSlots } from "./step-slots.ts";
import type { EarlierStep, StartedStep, WorkflowJournal } from "./workflow-journal.ts";

/** A step that is to be worked on. */
export interface StepOrder {
  readonly index: number;
  readonly label: string;
  readonly phase: string | undefined;
  readonly prompt: string;
  readonly options: StepOptions;
  readonly agentId: string;
  /** The agent began this step before, and continues it. */
  readonly isContinued: boolean;
  readonly signal: AbortSignal;
  /** Called with what is new about it, while it works. */
  readonly progress: (seen: Partial<WorkflowStep>) => void;
  /** Called with its first answer. */
  readonly answered: () => void;
}

export type StepOutcome =
  | {
      readonly type: "done";
      readonly value: unknown;
      readonly isEmpty?: boolean;
      readonly branch?: string | undefined;
      readonly toolUses?: number;
    }
  /** The provider failed, or a person skipped it: the script gets null. */
  | { readonly type: "nothing"; readonly reason: string; readonly isSkipped?: boolean }
  /** The script gets an error. */
  | { readonly type: "refused"; readonly error: ScriptError };

/** What became of the agent of a step that has no end in the journal. */
export type RecoveredStep = Extract<StepOutcome, { type: "done" }> | { readonly type: "cut-off" | "lost" };

/** Carries steps out as agents. */
export interface StepRunner {
  /** Decides what the agent of such a step would be; rejects with the reason where there can be none. */
  shape(options: StepOptions, phase: string | undefined): Promise<StepShape>;
  newAgentId(key: string): string;
  run(order: StepOrder): Promise<StepOutcome>;
  recover(started: StartedStep, options: StepOptions): Promise<RecoveredStep>;
  /** Whether what a finished step has left is still there; undefined where it is, else why not. */
  isLost(finished: { readonly branch?: string }): Promise<string | undefined>;
}

export interface RunnableWorkflow {
  readonly name: string;
  readonly body: ScriptBody;
  readonly phases?: readonly WorkflowPhase[] | undefined;
}

export interface WorkflowRunOptions {
  readonly workflow: RunnableWorkflow;
  /** JSON; absent means undefined. */
  readonly args: string | undefined;
  readonly openRealm: (events: RealmEvents, options: { readonly signal: AbortSignal }) => ScriptRealm;
  readonly steps: StepRunner;
  readonly journal: WorkflowJournal;
  readonly slots: StepSlots;
  /** Finds a workflow that the script calls; rejects with the reason where there is none. */
  readonly find: (ref: { readonly name?: string; readonly scriptPath?: string }) => Promise<RunnableWorkflow>;
  /** Output tokens that may be taken, and were taken so far. */
  readonly budget: { readonly total: number | null; readonly spent: () => number };
  /** Labels of steps that run again although they are finished. */
  readonly fresh?: ReadonlySet<string>;
  /** How many equal failures in a row end a phase. */
  readonly breaker: number;
  readonly emit: (change: WorkflowChange) => void;
  readonly clock: WaitClock;
  readonly epochMs: () => number;
  readonly signal: AbortSignal;
}

export const maxCalls = 1000;
const maxLabel = 80;
/** A label or title of a script is cut here. */
const maxName = 200;
/** More phases of a run are not shown, though their steps run. */
const maxPhases = 1000;
/** Of a prompt, a result and a line so much is kept to be shown; transcripts and the journal have the whole. */
const maxShown = 4000;
/** Steps that were not awaited have so long to end. */
const endingMs = 5_000;

interface Scope {
  /** The phase of all its steps, for a workflow within another. */
  readonly group: string | undefined;
  readonly prefix: string;
  readonly parent: { readonly scope: number; readonly id: number } | undefined;
}

interface Run extends WorkflowRunOptions {
  readonly keyOf: ReturnType<typeof createContentKeys>;
  readonly scopes: Map<number, Scope>;
  /** Ends the steps. */
  readonly stop: AbortController;
  readonly working: Set<Promise<void>>;
  readonly phases: Map<string, { agents: number }>;
  /** By phase: the failure it had last, and how often in a row. */
  readonly failures: Map<string, { text: string; count: number }>;
  readonly children: Map<string, number>;
  /** Earlier steps by label that no step of this run was compared with yet. */
  readonly compared: Map<string, EarlierStep[]>;
  readonly answer: (scope: number, answer: Omit<ScriptAnswer, "spent">) => void;
  realm: ScriptRealm | undefined;
  calls: number;
  lastScope: number;
  /** Labels of `fresh` that no step had so far. */
  readonly freshLeft: Set<string>;
  /** Settles when what every call so far would be is decided. */
  decided: Promise<unknown>;
}

type Ending = Omit<Extract<WorkflowChange, { type: "ended" }>, "type" | "at">;

/** Runs a workflow to its end. Everything that happens is reported as a change, the end as the last one. */
export async function runWorkflow(options: WorkflowRunOptions): Promise<Ending> {
  const stop = new AbortController();
  const over = Promise.withResolvers<Ending>();
  const run: Run = {
    ...options,
    keyOf: createContentKeys(),
    scopes: new Map([[1, { group: undefined, prefix: "", parent: undefined }]]),
    stop,
    working: new Set(),
    phases: new Map(),
    failures: new Map(),
    children: new Map(),
    compared: Map.groupBy(options.journal.tried, ({ label }) => label),
    answer: (scope, answer) => run.realm?.answer(scope, { ...answer, spent: options.budget.spent() }),
    realm: undefined,
    calls: 0,
    lastScope: 1,
    freshLeft: new Set(options.fresh),
    decided: Promise.resolve(),
  };
  const events: RealmEvents = {
    message: (scope, message) => {
      const ending = takeMessage(run, scope, message);
      if (ending !== undefined) over.resolve(ending);
    },
    broke(scope, reason) {
      const parent = scope === "all" ? undefined : run.scopes.get(scope)?.parent;
      if (parent === undefined) over.resolve({ status: "failed", error: reason });
      else run.answer(parent.scope, { id: parent.id, error: { name: "Error", message: reason } });
    },
  };
  const ending = await begin(run, events, over.promise).catch((error: unknown): Ending => {
    if (options.signal.aborted) return { status: "killed" };
    return { status: "failed", error: error instanceof Error ? error.message : String(error) };
  });
  stop.abort(new RetinueError("workflow-over", "The workflow has ended."));
  await settledSoon(Promise.all(run.working), stop.signal, endingMs).catch(() => undefined);
  await run.realm?.[Symbol.asyncDispose]();
  for (const label of run.freshLeft)
    options.emit({
      type: "log",
      text: `No step has the label ${JSON.stringify(label)}, so none was run again.`,
    });
  options.emit({ type: "ended", at: options.epochMs(), ...ending });
  return ending;
}

async function begin(run: Run, events: RealmEvents, over: Promise<Ending>): Promise<Ending> {
  const { signal, workflow, args, budget } = run;
  run.realm = run.openRealm(events, { signal });
  run.realm.begin(1, workflow.body, {
    args,
    total: budget.total,
    spent: budget.spent(),
  });
  return abortable(over, signal);
}

function takeMessage(run: Run, id: number, message: ScriptMessage): Ending | undefined {
  const scope = run.scopes.get(id);
  if (scope === undefined || run.stop.signal.aborted) return undefined;
  switch (message.type) {
    case "agent":
      track(run, callAgent(run, id, message));
      return undefined;
    case "workflow":
      track(run, callWorkflow(run, id, message));
      return undefined;
    case "phase":
      if (scope.group === undefined) showPhase(run, shown(message.title, maxName));
      return undefined;
    case "log":
      run.emit({ type: "log", text: shown(`${scope.prefix}${message.text}`) });
      return undefined;
    case "failure":
      run.emit({ type: "failure", text: shown(`${scope.prefix}${message.text}`) });
      return undefined;
    case "returned": {
      const ending: Ending = {
        status: "completed",
        ...(message.value === undefined ? {} : { result: message.value }),
      };
      const parent = run.scopes.get(id)?.parent;
      if (parent === undefined) return ending;
      run.scopes.delete(id);
      run.realm?.end(id);
      const { result } = ending;
      run.answer(parent.scope, { id: parent.id, ...(result === undefined ? {} : { value: result }) });
      return undefined;
    }
    case "threw": {
      const { name, message: text, line } = message;
      const error = `${name}: ${text}`;
      if (scope.parent === undefined) return { status: "failed", error, errorLine: line };
      run.emit({ type: "failure", text: `${scope.prefix}failed: ${error}` });
      run.scopes.delete(id);
      run.realm?.end(id);
      run.answer(scope.parent.scope, { id: scope.parent.id, error: { name, message: text } });
      return undefined;
    }
  }
}

function track(run: Run, work: Promise<void>): void {
  run.working.add(work);
  const forget = (): void => void run.working.delete(work);
  work.then(forget, forget);
}

function showPhase(run: Run, title: string, isChild?: true): { agents: number } {
  const known = run.phases.get(title);
  if (known !== undefined) return known;
  const own = { agents: 0 };
  run.phases.set(title, own);
  if (run.phases.size > maxPhases) return own;
  const detail = run.workflow.phases?.find((phase) => phase.title === title)?.detail;
  const phase = { index: run.phases.size, title, stepsBefore: run.calls };
  run.emit({
    type: "phase",
    phase: { ...phase, ...(detail === undefined ? {} : { detail }), ...(isChild && { isChild }) },
  });
  return own;
}

type AgentMessage = Extract<ScriptMessage, { type: "agent" }>;

/** One call of `agent()`: it is answered, whatever happens, unless the run ends before. */
async function callAgent(run: Run, scopeId: number, { id, prompt, options }: AgentMessage): Promise<void> {
  const { answer, emit, epochMs } = run;
  const refuse = (name: string, message: string): void => answer(scopeId, { id, error: { name, message } });
  if (run.calls >= maxCalls)
    return refuse(
      "WorkflowAgentCapError",
      `A workflow may start ${maxCalls} agents, and this one has started that many.`,
    );
  const named = options.phase === undefined ? undefined : shown(options.phase, maxName);
  const phase = run.scopes.get(scopeId)?.group ?? named;
  const inPhase = phase === undefined ? undefined : showPhase(run, phase);
  run.calls += 1;
  const index = run.calls;
  const label = options.label === undefined ? shortLine(prompt) : shown(options.label, maxName);
  const change = (step: Partial<WorkflowStep>): void => emit({ type: "step", step: { ...step, index } });
  const at = epochMs();
  change({
    label,
    prompt: shown(prompt),
    state: "waiting",
    queuedAt: at,
    lastSignAt: at,
    phase,
  });
  if (inPhase !== undefined) inPhase.agents += 1;
  let outcome: StepOutcome;
  try {
    const refusal = refuseStep(run, { options, phase, inPhase });
    outcome = refusal ?? (await takeOrWork(run, { index, label, prompt, phase, options, change }));
  } catch (error) {
    // What was stopped with its run is answered no more.
    if (run.stop.signal.aborted || run.signal.aborted) return;
    outcome = { type: "refused", error: { name: "Error", message: reasonOf(error) } };
  }
  if (run.stop.signal.aborted || run.signal.aborted) return;
  noteFailure(run, phase, outcome);
  const endedAt = epochMs();
  if (outcome.type === "done") {
    const json = JSON.stringify(outcome.value);
    answer(scopeId, { id, ...(json === undefined ? {} : { value: json }) });
  } else if (outcome.type === "nothing") {
    const { reason, isSkipped = false } = outcome;
    change({ state: isSkipped ? "skipped" : "failed", error: reason, endedAt, lastSignAt: endedAt });
    emit({ type: "failure", text: `[${label}] ${isSkipped ? "skipped" : "failed"}: ${reason}` });
    answer(scopeId, { id, value: "null" });
  } else {
    change({ state: "failed", error: outcome.error.message, endedAt, lastSignAt: endedAt });
    answer(scopeId, { id, error: outcome.error });
  }
}

function refused(message: string, name = "Error"): StepOutcome {
  return { type: "refused", error: { name, message } };
}

/** Why a step does not begin. */
function refuseStep(
  run: Run,
  {
    options,
    phase,
    inPhase,
  }: {
    readonly options: StepOptions;
    readonly phase: string | undefined;
    readonly inPhase: { agents: number } | undefined;
  },
): StepOutcome | undefined {
  if (options.isolation === "remote")
    return refused('The isolation "remote" is not supported; use "worktree".');
  const limit = run.workflow.phases?.find(({ title }) => title === phase)?.maxAgents;
  if (limit !== undefined && inPhase !== undefined && inPhase.agents > limit)
    return refused(
      `The phase ${JSON.stringify(phase)} may start ${limit} agents, and it has started that many.`,
    );
  return refuseNow(run, phase);
}

/** What may have changed while a step waited for its place. */
function refuseNow(run: Run, phase = ""): StepOutcome | undefined {
  const { total, spent } = run.budget;
  if (total !== null && spent() >= total)
    return refused(`The budget of ${total} output tokens is used up.`, "WorkflowBudgetError");
  const failure = run.failures.get(phase);
  if (failure === undefined || failure.count < run.breaker) return undefined;
  const where = phase === "" ? "The workflow" : `The phase ${JSON.stringify(phase)}`;
  return refused(
    `${where} starts no more agents, because ${failure.count} in a row failed in the same way: ${failure.text}`,
    "WorkflowBreakerError",
  );
}

/** Equal failures in a row end a phase; one that works begins anew. */
function noteFailure(run: Run, phase = "", outcome: StepOutcome): void {
  if (outcome.type === "done") {
    run.failures.delete(phase);
    return;
  }
  if (outcome.type === "nothing" && outcome.isSkipped === true) return;
  const text = outcome.type === "nothing" ? outcome.reason : outcome.error.message;
  if (outcome.type === "refused" && outcome.error.name === "WorkflowBreakerError") return;
  const known = run.failures.get(phase);
  const count = known?.text === text ? known.count + 1 : 1;
  run.failures.set(phase, { text, count });
  if (count === run.breaker)
    run.emit({
      type: "log",
      text: `${phase === "" ? "The workflow" : `The phase ${JSON.stringify(phase)}`} was stopped: ${count} agents in a row failed in the same way: ${text}`,
    });
}

interface StepCall extends Pick<StepOrder, "index" | "label" | "prompt" | "phase" | "options"> {
  readonly change: (step: Partial<WorkflowStep>) => void;
}

/** The result of a step: from the journal where it is there, else from an agent. */
async function takeOrWork(run: Run, step: StepCall): Promise<StepOutcome> {
  const { journal, steps } = run;
  const { options, prompt, phase, label, change } = step;
  const shape = await inOrder(run, steps.shape(options, phase)).catch((error: unknown) => {
    journal.append({ type: "failed", error: reasonOf(error) });
    throw error;
  });
  const { schema, verify } = options;
  const content = run.keyOf({ prompt, shape, schema, verify });
  const { key } = content;
  change({ key, agentType: shape.agentType, model: shape.model });
  // The earlier step that a step is to be compared with: itself, else the first of its label that is left.
  const { compared } = run;
  const same = compared.get(label) ?? [];
  const own = same.findIndex((step) => step.key === key);
  const [found] = same.splice(Math.max(0, own), 1);
  const before = found;
  const isFresh = run.fresh?.has(label) === true;
  run.freshLeft.delete(label);
  const finished = isFresh ? undefined : journal.finished.get(key);
  const lost = finished && (await steps.isLost(finished));
  if (finished !== undefined && lost === undefined) {
    const { agentId, result, branch } = finished;
    finish(run, step, { agentId, taken: true, outcome: { type: "done", value: result, branch } });
    return { type: "done", value: result };
  }
  const started = isFresh || finished !== undefined ? undefined : journal.started.get(key);
  const recovered = started === undefined ? undefined : await steps.recover(started, options);
  const failure = journal.failed.get(key);
  if (started !== undefined && recovered?.type === "done" && failure === undefined) {
    const { agentId } = started;
    writeResult(run, { key, agentId, outcome: recovered });
    finish(run, step, { agentId, taken: true, outcome: recovered });
    return recovered;
  }
  const isContinued = recovered?.type === "cut-off";
  const why = isFresh
    ? "asked to run again"
    : (lost ?? (isContinued ? whyContinued(failure) : whyNew(run, content, before)));
  return work(run, step, {
    ...content,
    why,
    isContinued,
    agentId: isContinued && started !== undefined ? started.agentId : steps.newAgentId(key),
    shape,
  });
}

/**
 * Calls are decided together, but numbered and begun in the order in which the script made them: equal steps would otherwise change
 * places when a run is resumed.
 */
async function inOrder<Value>(run: Run, deciding: Promise<Value>): Promise<Value> {
  const before = run.decided;
  run.decided = Promise.allSettled([before, deciding]).then(() => undefined);
  await before;
  return await deciding;
}

function whyContinued(failure: string | undefined): string {
  return failure === undefined
    ? "continued where it was cut off"
    : `continued where it failed: ${shortLine(failure)}`;
}

/** Why the journal has no result of a step, for a run that was continued; undefined for one that begins. */
function whyNew(
  { journal }: Run,
  { key, parts }: ContentKey,
  before: EarlierStep | undefined,
): string | undefined {
  if (journal.tried.length === 0) return undefined;
  const failure = journal.failed.get(key);
  if (failure !== undefined) return `failed before: ${shortLine(failure)}`;
  if (journal.started.has(key)) return "was cut off, and what its agent did cannot be continued";
  if (before === undefined) return "new in this run";
  return describeChange(before.parts, parts) ?? "one more of equal steps";
}

interface Worked extends ContentKey {
  readonly why: string | undefined;
  readonly isContinued: boolean;
  readonly agentId: string;
  readonly shape: StepShape;
}

async function work(
  run: Run,
  step: StepCall,
  { key, parts, why, isContinued, agentId, shape }: Worked,
): Promise<StepOutcome> {
  const { journal, steps, slots } = run;
  const { change, label, phase } = step;
  const signal = AbortSignal.any([run.signal, run.stop.signal]);
  using _place = await slots.enter(signal);
  const refusal = refuseNow(run, phase);
  if (refusal !== undefined) return refusal;
  journal.append({
    ...{ type: "started", key, agentId, label, parts },
    ...(phase === undefined ? {} : { phase }),
  });
  const startedAt = run.epochMs();
  change({
    state: "running",
    agentId,
    startedAt,
    lastSignAt: startedAt,
    why,
  });
  const isWarm = await slots.warmUp(`${shape.agentType}\0${shape.model}`, signal);
  try {
    const { index, prompt, options } = step;
    const outcome =
      refuseNow(run, phase) ??
      (await steps.run({
        index,
        label,
        phase,
        prompt,
        options,
        agentId,
        isContinued,
        signal,
        progress: change,
        answered: isWarm,
      }));
    if (outcome.type === "done") {
      writeResult(run, { key, agentId, outcome });
      finish(run, step, { agentId, taken: false, outcome });
    } else if (!signal.aborted) {
      const error = outcome.type === "nothing" ? outcome.reason : outcome.error.message;
      journal.append({ type: "failed", key, agentId, error });
    }
    return outcome;
  } finally {
    isWarm();
  }
}

type Done = Extract<StepOutcome, { type: "done" }>;

function writeResult(
  { journal }: Run,
  {
    key,
    agentId,
    outcome: { value, toolUses, branch },
  }: { readonly key: string; readonly agentId: string; readonly outcome: Done },
): void {
  journal.append({
    type: "result",
    key,
    agentId,
    result: value,
    toolsUsed: toolUses,
    branch,
  });
}

function finish(
  run: Run,
  { change }: StepCall,
  { agentId, taken, outcome }: { readonly agentId: string; readonly taken: boolean; readonly outcome: Done },
): void {
  const { value, isEmpty, branch } = outcome;
  const at = run.epochMs();
  change({
    state: "done",
    agentId,
    endedAt: at,
    lastSignAt: at,
    result: shown(typeof value === "string" ? value : (JSON.stringify(value) ?? "")),
    ...(taken ? { taken, startedAt: at } : {}),
    ...(isEmpty === true ? { isEmpty } : {}),
    branch,
  });
}

/** Another workflow within this one, in the same realm, with arguments of its own. */
async function callWorkflow(
  run: Run,
  scopeId: number,
  { id, args, ...ref }: Extract<ScriptMessage, { type: "workflow" }>,
): Promise<void> {
  const refuse = (message: string): void => run.answer(scopeId, { id, error: { name: "Error", message } });
  if (run.scopes.get(scopeId)?.parent !== undefined)
    return refuse("A workflow that another one called cannot call a workflow itself.");
  let found: RunnableWorkflow;
  try {
    found = await run.find(ref);
  } catch (error) {
    return refuse(reasonOf(error));
  }
  const { name, body } = found;
  const count = (run.children.get(name) ?? 0) + 1;
  run.children.set(name, count);
  const group = count === 1 ? `▸ ${name}` : `▸ ${name} #${count}`;
  run.lastScope += 1;
  const own = run.lastScope;
  showPhase(run, group, true);
  run.scopes.set(own, { group, prefix: `[${name}] `, parent: { scope: scopeId, id } });
  const { total, spent } = run.budget;
  run.realm?.begin(own, body, { args, total, spent: spent() });
}

function reasonOf(error: unknown): string {
  const advice = isRetinueError(error) && error.advice !== undefined ? ` ${error.advice}` : "";
  return `${error instanceof Error ? error.message : String(error)}${advice}`;
}

function shown(text: string, most = maxShown): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function shortLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > maxLabel ? `${line.slice(0, maxLabel - 1)}…` : line;
}
