import { defined } from "@retinue/base/foundation/defined.ts";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { addUsage } from "../conversation/usage.ts";
import { interruptedReason } from "../protocol/agent-state.ts";
import { changesQuotaWait, quotaWaitOf } from "../tasks/transcript-task.ts";
import type { AgentState, InFlight, InspectedAgent, RecordedTotals, Step } from "./inspection.ts";
import {
  bounded,
  boundedLine,
  numberField,
  readSystemLine,
  recordField,
  textField,
  timeOf,
} from "./read-answer.ts";
import { answersForDeadProcess } from "./read-call.ts";
import { createRunClock, type RunClock } from "./run-clock.ts";
import { createStepList, type StepList } from "./step-list.ts";
import { totalsOf } from "./totals-of.ts";

/** What the lines of one agent show of it, before its place in the session is known. */
export interface FoldedAgent
  extends Omit<InspectedAgent, "id" | "parentId" | "depth" | "agentType" | "description" | "name" | "tree"> {
  readonly cwd?: string;
  readonly gitBranch?: string;
  readonly version?: string;
}

/** Takes lines one by one and keeps only what an inspection shows. Total: any lines will do. */
export interface AgentFold {
  add(record: JsonRecord): void;
  result(facts: { readonly isLive: boolean; readonly now: number }): FoldedAgent;
}

type LastLine = "none" | "answer" | "user" | "ending";

const maxPrompt = 2000;

/** What the lines read so far have shown. */
interface FoldState {
  readonly list: StepList;
  readonly clock: RunClock;
  first?: number;
  lastAt?: number;
  context: Pick<FoldedAgent, "cwd" | "gitBranch" | "version">;
  last: LastLine;
  isOwn: boolean;
  prompt?: string;
  ending?: Extract<Step, { type: "ending" }>;
  recorded?: RecordedTotals | undefined;
  quota?: { readonly provider: string; readonly until: number } | undefined;
}

export function createAgentFold(): AgentFold {
  const state: FoldState = {
    list: createStepList(),
    clock: createRunClock(),
    context: {},
    last: "none",
    isOwn: false,
  };
  const seen = new Set<string>();
  let last: FoldedAgent | undefined;
  let lastNow = 0;
  return {
    add(record) {
      const uuid = textField(record, "uuid");
      // Lines copied by a fork belong to the session they come from.
      if (record.forkedFrom !== undefined || (uuid !== undefined && seen.has(uuid))) return;
      if (uuid !== undefined) seen.add(uuid);
      addLine(state, record);
      last = undefined;
    },
    result(options) {
      // Only what runs changes with the time.
      const isOld = last?.state === "running" && options.now !== lastNow;
      if (last === undefined || last.isLive !== options.isLive || isOld) last = resultOf(state, options);
      lastNow = options.now;
      return last;
    },
  };
}

function addLine(state: FoldState, record: JsonRecord): void {
  const { list, clock } = state;
  state.isOwn ||= isOwnLine(record);
  if (changesQuotaWait(record)) state.quota = quotaWaitOf([record]);
  if (record.type === "retinue-outcome") list.addOutcome(record);
  if (record.type === "retinue-plan") {
    // A process resumes the agent. A child's plan precedes its first words, that of the main agent follows them.
    const { isSidechain } = record;
    if (isSidechain === true) clock.end();
    else clock.endBeforeLast();
  }
  if (!takeLine(state, record)) return;
  state.context = { ...state.context, ...contextOf(record) };
  const isLate = state.last === "ending" && wasCutOff(state.ending);
  const at = isLate ? undefined : timeOf(record);
  clock.onEvent(at);
  if (state.last === "ending") clock.end();
  if (at === undefined) return;
  state.first ??= at;
  state.lastAt = Math.max(state.lastAt ?? at, at);
}

/** Whether the line is part of the work; others may be written long after it. */
function takeLine(state: FoldState, record: JsonRecord): boolean {
  if (record.type === "system") {
    const step = readSystemLine(record);
    if (step === undefined) return false;
    state.list.add(step);
    if (step.type !== "ending") return true;
    state.ending = step;
    state.last = "ending";
    state.recorded = addRecorded(state.recorded, record);
    return true;
  }
  if (record.type === "user") addUser(state, record);
  else if (record.type === "assistant") {
    state.list.addAnswer(record, state.lastAt);
    state.last = "answer";
  } else return false;
  return true;
}

/** A prompt after a complete answer begins a new run, whether or not the end of the one before was written. */
function addUser(state: FoldState, record: JsonRecord): void {
  const { list, clock } = state;
  const wasDone = state.last === "answer" && !list.hasOpenCalls();
  if (answersForDeadProcess(record)) clock.end();
  const text = list.addUser(record);
  if (record.isCompactSummary === true) return;
  const isMeta = record.isMeta === true;
  if (wasDone && text !== "" && !isMeta) clock.end();
  state.last = "user";
  if (text === "") return;
  if (!isMeta) state.prompt ??= bounded(text, maxPrompt);
  const at = timeOf(record);
  list.add(defined({ type: "prompt" as const, at, text: boundedLine(text, 400), isMeta }));
}

function resultOf(
  state: FoldState,
  { isLive, now }: Parameters<AgentFold["result"]>[0],
): ReturnType<AgentFold["result"]> {
  const { list, clock, last, isOwn, ending, prompt, recorded, first, lastAt } = state;
  const standing = stateOf({ last, isLive, isOwn, ending, isOpen: list.hasOpenCalls() });
  const isUnfinished = standing === "running" || standing === "interrupted";
  const steps = list
    .steps(standing === "running" ? "running" : "interrupted")
    .map((step) => lastingUntil(step, now));
  const runs = clock.spans(standing === "running" ? now : undefined);
  const result = list.lastText();
  return {
    ...state.context,
    ...defined({
      state: standing,
      reason: last === "ending" && !wasCutOff(ending) ? ending?.reason : undefined,
      error: last === "ending" ? ending?.error : undefined,
      receipt: last === "ending" ? ending?.receipt : undefined,
      quote: last === "ending" ? ending?.quote : undefined,
      startedAt: first,
      lastSignAt: lastAt,
      prompt,
      result: result === "" ? undefined : result,
      recorded,
    }),
    isLive,
    models: modelsOf(steps),
    runs,
    totals: totalsOf(steps, runs),
    inFlight: isUnfinished ? inFlightOf(state, list.openCalls()) : [],
    steps,
  };
}

/** A call that still runs has lasted until now. */
function lastingUntil(step: Step, now: number): Step {
  if (step.type !== "call" || step.outcome !== "running" || step.at === undefined) return step;
  return { ...step, durationMs: Math.max(0, now - step.at) };
}

const statuses: ReadonlySet<string> = new Set(["completed", "partial", "failed", "stopped"]);

function stateOf(facts: {
  readonly last: LastLine;
  readonly isLive: boolean;
  readonly isOwn: boolean;
  readonly isOpen: boolean;
  readonly ending: { readonly status: string; readonly reason: string } | undefined;
}): AgentState {
  const { last, isLive, isOwn, isOpen, ending } = facts;
  if (last === "ending" && wasCutOff(ending)) return "interrupted";
  // One of the four words, as checked in the same line.
  if (last === "ending" && ending !== undefined && statuses.has(ending.status))
    return ending.status as AgentState;
  if (isLive) return "running";
  if (last === "none") return "empty";
  // Our own runs write how they ended; of others, a complete answer is all there is.
  return last === "answer" && !isOpen && !isOwn ? "answered" : "interrupted";
}

/** The process that finds an agent whose process died writes this ending, maybe days later. */
function wasCutOff(ending: { readonly status: string; readonly reason: string } | undefined): boolean {
  return ending?.status === "stopped" && ending.reason === interruptedReason;
}

function isOwnLine({ type, runEnding, costUSD, toolCall }: JsonRecord): boolean {
  return (
    (typeof type === "string" && type.startsWith("retinue-")) ||
    runEnding !== undefined ||
    costUSD !== undefined ||
    toolCall !== undefined
  );
}

function contextOf(record: JsonRecord): Pick<FoldedAgent, "cwd" | "gitBranch" | "version"> {
  return defined({
    cwd: textField(record, "cwd"),
    gitBranch: textField(record, "gitBranch"),
    version: textField(record, "version"),
  });
}

function modelsOf(steps: readonly Step[]): readonly string[] {
  return [...new Set(steps.flatMap((step) => (step.type === "turn" ? [step.model] : [])))];
}

function inFlightOf(
  { last, lastAt, quota }: FoldState,
  calls: readonly { callId: string; tool: string; about: string; at?: number }[],
): readonly InFlight[] {
  if (quota !== undefined) return [defined({ type: "model" as const, since: lastAt, quota })];
  if (calls.length > 0)
    return calls.map(({ callId, tool, about, at }) =>
      defined({ type: "call" as const, callId, tool, about, since: at }),
    );
  return last === "user" ? [defined({ type: "model" as const, since: lastAt })] : [];
}

function addRecorded(before: RecordedTotals | undefined, record: JsonRecord): RecordedTotals {
  const ending = recordField(record, "runEnding") ?? {};
  const usage = recordField(ending, "usage") ?? {};
  const tokens = (name: string): number => numberField(usage, name) ?? 0;
  const cost = numberField(ending, "costUSD");
  const wasKnown = before === undefined || before.costUsd !== undefined;
  const own = {
    inputTokens: tokens("inputTokens"),
    outputTokens: tokens("outputTokens"),
    cacheReadTokens: tokens("cacheReadTokens"),
    cacheWriteTokens: tokens("cacheWriteTokens"),
  };
  return {
    turns: (before?.turns ?? 0) + (numberField(ending, "turns") ?? 0),
    toolUses: (before?.toolUses ?? 0) + (numberField(ending, "toolUses") ?? 0),
    usage: before === undefined ? own : addUsage(before.usage, own),
    ...(wasKnown && cost !== undefined ? { costUsd: (before?.costUsd ?? 0) + cost } : {}),
    durationMs: (before?.durationMs ?? 0) + (numberField(record, "durationMs") ?? 0),
    modelMs: (before?.modelMs ?? 0) + (numberField(ending, "modelMs") ?? 0),
  };
}
