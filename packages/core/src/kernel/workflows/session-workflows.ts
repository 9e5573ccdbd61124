// @io
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { cpus } from "node:os";
import { dirname, join, resolve } from "node:path";
import { placeText } from "@retinue/base/foundation/diagnostic.ts";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { SavedWorkflow } from "@retinue/config/workflows/list-workflow-files.ts";
import type { WorkflowMeta } from "@retinue/config/workflows/workflow-meta.ts";
import type { BatchQuote } from "@retinue/gate/batch-quote.ts";
import type { Message, UserMessage } from "../../conversation/message.ts";
import { badRunId, isRunId, newRunId, workflowFiles } from "../../journal/session-files.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { StartedWith, WorkflowRunState } from "../../protocol/workflow-state.ts";
import { createRealmTurns, openRealm, type RealmTurns } from "../../workflows/open-realm.ts";
import { type RunnableWorkflow, runWorkflow } from "../../workflows/run-workflow.ts";
import type { ScriptBody } from "../../workflows/start-realm.ts";
import { createStepSlots, defaultSlots } from "../../workflows/step-slots.ts";
import { openJournal, sessionsOfRun } from "../../workflows/workflow-journal.ts";
import type { ChildSession } from "../agent/child-session.ts";
import type { OutputSchema } from "../options/typed-output.ts";
import type { BatchQuestion } from "../quotes/batch-question.ts";
import { type BillLimits, billWorkflow, type WorkflowBill } from "./bill-workflow.ts";
import { openWorkflowSteps } from "./open-workflow-steps.ts";
import type { StepsElsewhere } from "./steps-elsewhere.ts";
import { workflowEndNotice } from "./workflow-end-notice.ts";
import type { LiveWorkflow, WorkflowRuns } from "./workflow-runs.ts";

/** What is to be run. Of several that are given, the file counts before the name, and that before the script. */
export interface WorkflowRequest {
  readonly script?: string | undefined;
  readonly name?: string | undefined;
  readonly scriptPath?: string | undefined;
  /** A function of the program, with what it is called, and the schemas that it has used so far. */
  readonly function?:
    | {
        readonly name: string;
        readonly body: Exclude<ScriptBody, string>;
        readonly schemas: ReadonlyMap<string, OutputSchema>;
      }
    | undefined;
  readonly args?: unknown;
  readonly resumeFromRunId?: string | undefined;
  /** Labels of steps that run again although they are finished. */
  readonly fresh?: readonly string[] | undefined;
  /** The most US dollars and tokens of the run, beside those of settings. */
  readonly maxBudgetUsd?: number | undefined;
  readonly maxTokens?: number | undefined;
  readonly callId?: string | undefined;
  /** The parent is notified of its end. */
  readonly notifies?: boolean | undefined;
  /** A person or program has seen the bill and said yes. */
  readonly isAgreed?: boolean | undefined;
  /** Its steps are carried out by other processes, which also keep what they came to. */
  readonly elsewhere?: StepsElsewhere | undefined;
  /** Gives up the question before the start. */
  readonly signal?: AbortSignal | undefined;
}

/** A workflow that was found and understood, before anything of it runs. */
export interface FoundWorkflow {
  readonly meta: WorkflowMeta;
  readonly body: ScriptBody;
  readonly text: string;
  /** Where its text is, for a file. */
  readonly file?: string;
  readonly saved?: SavedWorkflow;
}

/** The workflows of one session: those there are, and those that run. */
export interface SessionWorkflows {
  readonly saved: ReadonlyMap<string, SavedWorkflow>;
  readonly runs: WorkflowRuns;
  /** Reads and checks what a request names; rejects with what is wrong, and with its line. */
  find(request: WorkflowRequest): Promise<FoundWorkflow>;
  /** What it is expected to take; undefined for a function of the program. Starts nothing. */
  bill(request: WorkflowRequest, found?: FoundWorkflow): Promise<WorkflowBill | undefined>;
  /** Asks first where settings want it; rejects with `workflow-refused` after a no. */
  start(request: WorkflowRequest, found?: FoundWorkflow): Promise<LiveWorkflow>;
}

interface SessionWorkflowsParts {
  readonly saved: ReadonlyMap<string, SavedWorkflow>;
  readonly runs: WorkflowRuns;
  readonly session: ChildSession;
  readonly notify: (message: UserMessage) => void;
  readonly ask: BatchQuestion["ask"];
}

export function createSessionWorkflows(parts: SessionWorkflowsParts): SessionWorkflows {
  const { runtime } = parts.session.services;
  const { workflows: settings = {} } = runtime.discovered.settings.settings.plain;
  const slots = createStepSlots(settings.agents ?? defaultSlots(cpus().length), runtime.clock);
  const turns = createRealmTurns();
  const find: SessionWorkflows["find"] = (request) => findWorkflow(request, parts);
  const bill = async (request: WorkflowRequest, found: FoundWorkflow): Promise<WorkflowBill | undefined> => {
    const args = argsOf(request.args);
    const limits = costLimit(request, parts.session);
    return billWorkflow(found, {
      args: args === undefined ? undefined : JSON.parse(args),
      session: parts.session,
      limits,
    });
  };
  return {
    saved: parts.saved,
    runs: parts.runs,
    find,
    bill: async (request, found) => bill(request, found ?? (await find(request))),
    async start(request, given) {
      const found = given ?? (await find(request));
      const quote = await askBefore(request, { ...parts, found, bill });
      return start(request, { ...parts, slots, turns, found, quote });
    },
  };
}

/** One question about the bill, where settings want it, and what was quoted. Nothing of the run exists before the answer. */
async function askBefore(
  request: WorkflowRequest,
  {
    session: { quotes },
    found,
    ask,
    bill: make,
  }: Pick<SessionWorkflowsParts, "session" | "ask"> & {
    readonly found: FoundWorkflow;
    readonly bill: (request: WorkflowRequest, found: FoundWorkflow) => Promise<WorkflowBill | undefined>;
  },
): Promise<BatchQuote["total"] | undefined> {
  if (quotes.settings === undefined) return undefined;
  const bill = await make(request, found);
  if (bill === undefined || request.isAgreed === true) return bill?.quote.total;
  const answer = await ask(bill.requests, {
    signal: request.signal ?? new AbortController().signal,
    what: `the workflow ${JSON.stringify(found.meta.name)}`,
    callId: request.callId,
    bounds: bill,
  });
  if (answer.type === "refused")
    throw new RetinueError("workflow-refused", `The workflow was not started. ${answer.reason}`);
  return bill.quote.total;
}

/** The smallest ceiling of a run, with the setting that gives it. */
function costLimit({ maxBudgetUsd }: WorkflowRequest, { services, parent }: ChildSession): BillLimits {
  const { workflows: settings = {} } = services.runtime.discovered.settings.settings.plain;
  const tree = parent.plan.treeLimits?.costUsd?.value;
  const ceilings: BillLimits[] = [
    { usd: settings.maxBudgetUsd, from: "workflows.maxBudgetUsd" },
    { usd: maxBudgetUsd },
    {
      usd: tree === undefined ? undefined : Math.max(0, tree - services.tree.spent().usd),
      from: "what is left",
    },
  ];
  const [least = {}] = ceilings
    .filter(({ usd }) => usd !== undefined)
    .sort((one, other) => (one.usd ?? 0) - (other.usd ?? 0));
  return least;
}

async function findWorkflow(
  request: WorkflowRequest,
  { saved, session }: SessionWorkflowsParts,
): Promise<FoundWorkflow> {
  const { script, name, scriptPath, function: own } = request;
  if (own !== undefined) return { meta: { name: own.name, description: own.name }, body: own.body, text: "" };
  if (scriptPath !== undefined) {
    const file = resolve(session.parent.plan.directory, scriptPath);
    return { ...(await readScript(await readFileText(file), file)), file };
  }
  if (name !== undefined) {
    const found = saved.get(name);
    if (found === undefined) throw unknownWorkflow(name, saved);
    return { ...(await readScript(found.text, found.file)), saved: found };
  }
  if (script !== undefined) return readScript(script);
  throw new RetinueError("invalid-workflow", "No workflow to run was given.", {
    advice: "Give script, name or scriptPath.",
  });
}

async function readFileText(file: string): Promise<string> {
  try {
    const stats = await stat(file);
    if (!stats.isFile())
      throw new RetinueError("unreadable-file", `The script ${file} is not a regular file.`);
    const { maxScript } = await import("@retinue/config/workflows/read-workflow-script.ts");
    // A character takes up to four bytes.
    if (stats.size > maxScript * 4)
      throw new RetinueError(
        "workflow-broken",
        `The script ${file} has ${stats.size} bytes; the maximum is ${maxScript} characters.`,
        { advice: "Move data out of the script and pass it with args." },
      );
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof RetinueError) throw error;
    throw new RetinueError(
      "unreadable-file",
      `The script ${file} cannot be read (${errorCode(error) ?? String(error)}).`,
    );
  }
}

async function readScript(text: string, file?: string): Promise<FoundWorkflow> {
  const { readWorkflowScript } = await import("@retinue/config/workflows/read-workflow-script.ts");
  const read = readWorkflowScript(text, file);
  if (read.type === "script") return { meta: read.meta, body: read.code, text };
  const { problem } = read;
  const place =
    problem.line === undefined
      ? ""
      : ` (${file === undefined ? `line ${problem.line}, column ${problem.column ?? 1}` : placeText(problem)})`;
  throw new RetinueError(
    "workflow-broken",
    `${problem.message}${place}`,
    problem.advice === undefined ? {} : { advice: problem.advice },
  );
}

function unknownWorkflow(name: string, saved: ReadonlyMap<string, SavedWorkflow>): RetinueError {
  const available = [...saved.keys()].sort().join(", ");
  return new RetinueError(
    "unknown-workflow",
    `Workflow ${JSON.stringify(name)} not found. Available: ${available === "" ? "none" : available}`,
  );
}

type WorkflowSettings = NonNullable<
  ChildSession["services"]["runtime"]["discovered"]["settings"]["settings"]["plain"]["workflows"]
>;

interface Starting extends SessionWorkflowsParts {
  readonly slots: ReturnType<typeof createStepSlots>;
  readonly turns: RealmTurns;
  readonly found: FoundWorkflow;
  readonly quote: BatchQuote["total"] | undefined;
}

async function start(request: WorkflowRequest, parts: Starting): Promise<LiveWorkflow> {
  const { runs, session, found, notify } = parts;
  const { runtime, files } = session.services;
  const { plan } = session.parent;
  const { transcripts } = runtime.discovered.paths;
  const { workflows: settings = {} } = runtime.discovered.settings.settings.plain;
  const { elsewhere } = request;
  if (elsewhere !== undefined) refuseElsewhere(found, settings);
  const isKept = runtime.keepsTranscripts && elsewhere === undefined;
  const kept = isKept ? { transcripts, sessionId: plan.sessionId } : undefined;
  const runId = elsewhere?.runId ?? request.resumeFromRunId ?? newRunId();
  if (request.resumeFromRunId !== undefined) await refuseResume(runId, parts);
  const taskId = `w${randomBytes(4).toString("hex")}`;
  const own = kept === undefined ? undefined : workflowFiles(transcripts, plan.sessionId, runId);
  const journal = await openJournal(runId, kept);
  const args = argsOf(request.args);
  const scriptPath =
    own === undefined || found.text === ""
      ? found.file
      : (found.file ?? keepScript(own.scripts, found, runId));
  const outputFile = kept === undefined ? undefined : files.agent(taskId).output;
  const stop = new AbortController();
  const { live, emit } = runs.add(
    {
      runId,
      taskId,
      sessionId: plan.sessionId,
      name: found.meta.name,
      description: found.meta.description,
      script: found.text,
      scriptPath,
      ...(args === undefined ? {} : { args: JSON.parse(args) }),
      callId: request.callId,
      defaultModel: plan.model.value,
      startedWith: startedWith(plan),
      status: "running",
      startedAt: runtime.epochMs(),
      quote: parts.quote,
      phases: [],
      steps: [],
      logs: [],
      failures: [],
      ...(own === undefined ? {} : { directory: own.transcripts }),
      outputFile,
    },
    stop,
  );
  journal.append({ type: "launched", taskId, at: new Date(runtime.epochMs()).toISOString() });
  journal.save(live.state());
  const phases = Array.isArray(found.meta.phases) ? found.meta.phases : [];
  const limits = {
    ...limitOf("costUsd", smallest(settings.maxBudgetUsd, request.maxBudgetUsd)),
    ...limitOf("tokens", smallest(settings.maxTokens, request.maxTokens)),
  };
  const { signal } = stop;
  const saving = createSaving(() => journal.save(live.state()));
  const began = Promise.withResolvers<void>();
  if (typeof found.body !== "string") began.resolve();
  const turns: RealmTurns = async (begin) => {
    const realm = await parts.turns(begin);
    void realm.started.then(began.resolve);
    return realm;
  };
  const running = runWorkflow({
    workflow: { name: found.meta.name, body: found.body, phases },
    args,
    openRealm: (events, own) => openRealm(events, { ...own, turns, wall: runtime.wall }),
    steps: openWorkflowSteps(session, {
      runId,
      name: found.meta.name,
      limits,
      phases,
      elsewhere,
      signal,
      schemas: request.function?.schemas,
    }),
    journal,
    // Those that work elsewhere take no place here.
    slots:
      elsewhere === undefined
        ? parts.slots
        : createStepSlots(settings.agents ?? slotsElsewhere, runtime.clock),
    find: async (ref) => runnable(await findWorkflow(ref, parts)),
    budget: { total: budgetTotal(session, request), spent: () => spentOf(live.state()) },
    fresh: new Set(request.fresh ?? []),
    breaker: settings.breaker ?? defaultBreaker,
    // The end is shown last, when everything of it is written down.
    emit(change) {
      if (change.type === "ended") return;
      emit(change);
      saving.soon();
    },
    clock: runtime.clock,
    epochMs: runtime.epochMs,
    signal,
  });
  void running.then((ending) => {
    saving.end();
    const at = runtime.epochMs();
    const ended: WorkflowRunState = { ...live.state(), ...ending, endedAt: at };
    try {
      journal.save(ended);
      if (outputFile !== undefined) {
        const { result, logs } = ended;
        mkdirSync(dirname(outputFile), { recursive: true, mode: 0o700 });
        const text = result ?? ended.error ?? logs.join("\n");
        writeFileSync(outputFile, `${text}\n`, { mode: 0o600 });
      }
    } catch (error) {
      runtime.notice?.(`The files of the workflow ${runId} could not be written: ${String(error)}`);
    }
    journal.close();
    if (ending.status !== "killed" && request.notifies === true) notify(workflowEndNotice(ended));
    emit({ type: "ended", at, ...ending });
  });
  // So the caller is notified of a run that could not begin, and of several that were started one after another in this order.
  await Promise.race([began.promise, live.ended]);
  return live;
}

/** A run of many steps changes all the time; readers of its file see it a moment later. */
const saveAfterMs = 1_000;
/** Writing a large file on a slow disk holds everything up: so many times as long as it took is waited before the next one. */
const saveShare = 30;

function createSaving(save: () => void): { soon(): void; end(): void } {
  let timer: NodeJS.Timeout | undefined;
  let afterMs = saveAfterMs;
  return {
    soon() {
      timer ??= setTimeout(() => {
        timer = undefined;
        const startedAt = performance.now();
        try {
          save();
        } catch {
          // The end is written as well, and says what is wrong.
        }
        afterMs = Math.max(saveAfterMs, saveShare * (performance.now() - startedAt));
      }, afterMs).unref();
    },
    end: () => clearTimeout(timer),
  };
}

const slotsElsewhere = 16;

/** Limits that this process alone would keep, and so not over other processes. */
function refuseElsewhere({ meta }: FoundWorkflow, settings: WorkflowSettings): void {
  const phases = Array.isArray(meta.phases) ? meta.phases : [];
  const limited = phases.find(
    ({ maxBudgetUsd, maxTokens }) => maxBudgetUsd !== undefined || maxTokens !== undefined,
  );
  const what =
    limited === undefined
      ? (["maxBudgetUsd", "maxTokens"] as const)
          .filter((key) => settings[key] !== undefined)
          .map((key) => `workflows.${key} of the settings`)[0]
      : `maxBudgetUsd or maxTokens of the phase ${JSON.stringify(limited.title)}`;
  if (what !== undefined)
    throw new RetinueError("not-portable", `${what} cannot be enforced by the workers of a store.`, {
      advice: "Use --max-budget-usd, which applies across all workers, or run the workflow without a store.",
    });
}

/** How many equal failures in a row end a phase, by default. */
const defaultBreaker = 10;

async function refuseResume(runId: string, { runs, session }: Starting): Promise<void> {
  const { runtime } = session.services;
  if (!isRunId(runId)) throw badRunId(runId);
  const known = runs.find(runId);
  const state = known?.state();
  if (state?.status === "running")
    throw new RetinueError(
      "workflow-running",
      `Workflow ${runId} is still running (task ${state.taskId}). Stop it first with TaskStop({task_id: ${JSON.stringify(state.taskId)}}) before resuming.`,
    );
  const sessions = await sessionsOfRun(runtime.discovered.paths.transcripts, runId);
  if (known === undefined && sessions.length === 0)
    throw new RetinueError("unknown-run", `There is no workflow run ${runId} in this project.`, {
      advice: "`retinue workflow list --runs` lists them.",
    });
  const { transcripts } = runtime.discovered.paths;
  const hasJournal = sessions.some((session) =>
    existsSync(workflowFiles(transcripts, session, runId).journal),
  );
  if (sessions.length > 0 && !hasJournal)
    throw new RetinueError(
      "journal-gone",
      `The journal of the workflow run ${runId} is gone, so all its steps would run again, and cost again.`,
      { advice: "Start the workflow as a new run if that is what you want." },
    );
}

function startedWith({ chosenModel: { provider, id }, effort, policy }: AgentPlan): StartedWith {
  return {
    model: provider === undefined ? id : `${provider}/${id}`,
    ...(typeof effort?.value === "string" ? { effort: effort.value } : {}),
    permissionMode: policy.mode,
  };
}

/** A text that is JSON is meant as that. */
function argsOf(args: unknown): string | undefined {
  if (typeof args !== "string") return args === undefined ? undefined : JSON.stringify(args);
  try {
    JSON.parse(args);
    return args;
  } catch {
    return JSON.stringify(args);
  }
}

/** The script as it runs, for reading and changing it. */
function keepScript(folder: string, { meta, text }: FoundWorkflow, runId: string): string {
  const name =
    meta.name
      .replace(/[^A-Za-z0-9._-]+/g, "-")
      .replace(/^[.-]+/, "")
      .slice(0, 60) || "workflow";
  const file = join(folder, `${name}-${runId}.js`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

function runnable({ meta, body }: FoundWorkflow): RunnableWorkflow {
  return { name: meta.name, body };
}

function limitOf<Key extends string>(key: Key, value: number | undefined) {
  return value === undefined ? {} : { [key]: { value, from: "the workflow" } };
}

function smallest(...numbers: readonly (number | undefined)[]): number | undefined {
  const known = numbers.filter((number) => number !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

function spentOf({ steps }: WorkflowRunState): number {
  return steps.reduce((sum, { outputTokens }) => sum + outputTokens, 0);
}

/** What a script reads as `budget.total`: output tokens, from settings, the prompt, or what the money that is left can buy at most. */
function budgetTotal(
  { services, parent, messages }: ChildSession,
  { maxBudgetUsd, callId }: WorkflowRequest,
): number | null {
  const { workflows: settings = {} } = services.runtime.discovered.settings.settings.plain;
  const { price } = parent.model.facts;
  const treeUsd = parent.plan.treeLimits?.costUsd?.value;
  const left = treeUsd === undefined ? undefined : Math.max(0, treeUsd - services.tree.spent().usd);
  const usd = smallest(left, maxBudgetUsd, settings.maxBudgetUsd);
  const perToken = price === undefined ? undefined : price.output / 1_000_000;
  const affordable =
    usd === undefined || perToken === undefined || perToken <= 0 ? undefined : Math.floor(usd / perToken);
  // A call is part of a turn, for which a person may have said how much it is worth.
  const target = callId === undefined ? undefined : tokenTarget(messages());
  return smallest(affordable, settings.maxOutputTokens, target) ?? null;
}

const atEdge = /^\s*\+(\d+(?:\.\d+)?)([km])(?=\s|$)|(?:^|\s)\+(\d+(?:\.\d+)?)([km])[.!]?\s*$/i;
const factors: Readonly<Record<string, number>> = { k: 1_000, m: 1_000_000 };

/** The output tokens that a person gives for a turn: `+500k` or `+2m` at the beginning or end of the last prompt. */
export function tokenTarget(messages: readonly Message[]): number | undefined {
  const prompt = messages.flatMap(({ role, content }) => {
    if (role !== "user") return [];
    const blocks = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
    if (blocks.some(({ type }) => type === "tool_result")) return [];
    // What the runtime adds is in tags.
    return blocks.flatMap((block) =>
      block.type === "text" && !block.text.startsWith("<") ? [block.text] : [],
    );
  });
  const [, first, firstUnit, last = first, lastUnit = firstUnit] = atEdge.exec(prompt.at(-1) ?? "") ?? [];
  if (last === undefined || lastUnit === undefined) return undefined;
  return Math.round(Number(last) * (factors[lastUnit.toLowerCase()] ?? 1));
}
