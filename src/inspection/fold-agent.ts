import { addUsage } from "../conversation/usage.ts";
import type { JsonRecord } from "../foundation/json-value.ts";
import { interruptedReason } from "../tasks/task-state.ts";
import { totalsOf } from "./agent-totals.ts";
import type { AgentState, InFlight, InspectedAgent, RecordedTotals, Step } from "./inspection.ts";
import { readSystemLine } from "./read-answer.ts";
import { answersForDeadProcess } from "./read-call.ts";
import { bounded, boundedLine, defined, numberField, recordField, textField, timeOf } from "./read-line.ts";
import { createRunClock } from "./run-clock.ts";
import { createStepList } from "./step-list.ts";

/** What the lines of one agent tell of it, before its place in the session is known. */
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

export function createAgentFold(): AgentFold {
  const list = createStepList();
  const clock = createRunClock();
  const seen = new Set<string>();
  const times: { first?: number; last?: number } = {};
  let context: Pick<FoldedAgent, "cwd" | "gitBranch" | "version"> = {};
  let last: LastLine = "none";
  let isOwn = false;
  let prompt: string | undefined;
  let ending: Extract<Step, { type: "ending" }> | undefined;
  let recorded: RecordedTotals | undefined;

  /** A prompt after a complete answer begins a new run, whether or not the end of the one before was written. */
  const addUser = (record: JsonRecord): void => {
    const wasDone = last === "answer" && !list.hasOpenCalls();
    if (answersForDeadProcess(record)) clock.end();
    const text = list.addUser(record);
    if (record.isCompactSummary === true) return;
    const isMeta = record.isMeta === true;
    if (wasDone && text !== "" && !isMeta) clock.end();
    last = "user";
    if (text === "") return;
    if (!isMeta) prompt ??= bounded(text, maxPrompt);
    const at = timeOf(record);
    list.add(defined({ type: "prompt" as const, at, text: boundedLine(text, 400), isMeta }));
  };

  /** Whether the line is part of the work; others may be written long after it. */
  const addSystem = (record: JsonRecord): boolean => {
    const step = readSystemLine(record);
    if (step === undefined) return false;
    list.add(step);
    if (step.type !== "ending") return true;
    ending = step;
    last = "ending";
    recorded = addRecorded(recorded, record);
    return true;
  };

  /** A process takes the agent up. A child's plan stands before its first words, that of the main agent behind them. */
  const beginRun = ({ isSidechain }: JsonRecord): void => {
    if (isSidechain === true) clock.end();
    else clock.endBeforeLast();
  };

  const take = (record: JsonRecord): boolean => {
    if (record.type === "system") return addSystem(record);
    if (record.type === "user") addUser(record);
    else if (record.type === "assistant") {
      list.addAnswer(record, times.last);
      last = "answer";
    } else return false;
    return true;
  };

  return {
    add(record) {
      const uuid = textField(record, "uuid");
      // Lines copied by a fork belong to the session they come from.
      if (record.forkedFrom !== undefined || (uuid !== undefined && seen.has(uuid))) return;
      if (uuid !== undefined) seen.add(uuid);
      isOwn ||= isOwnLine(record);
      if (record.type === "retinue-outcome") list.addOutcome(record);
      if (record.type === "retinue-plan") beginRun(record);
      if (!take(record)) return;
      context = { ...context, ...contextOf(record) };
      const isLate = last === "ending" && wasCutOff(ending);
      const at = isLate ? undefined : timeOf(record);
      clock.hear(at);
      if (last === "ending") clock.end();
      if (at === undefined) return;
      times.first ??= at;
      times.last = Math.max(times.last ?? at, at);
    },
    result({ isLive, now }) {
      const state = stateOf({ last, isLive, isOwn, ending, isOpen: list.hasOpenCalls() });
      const steps = list
        .steps(state === "running" ? "running" : "interrupted")
        .map((step) => lastingUntil(step, now));
      const runs = clock.spans(state === "running" ? now : undefined);
      const result = list.lastText();
      return {
        ...context,
        ...defined({
          state,
          reason: last === "ending" && !wasCutOff(ending) ? ending?.reason : undefined,
          error: last === "ending" ? ending?.error : undefined,
          startedAt: times.first,
          lastSignAt: times.last,
          prompt,
          result: result === "" ? undefined : result,
          recorded,
        }),
        isLive,
        models: modelsOf(steps),
        runs,
        totals: totalsOf(steps, runs),
        inFlight:
          state === "running" || state === "interrupted"
            ? inFlightOf(last, list.openCalls(), times.last)
            : [],
        steps,
      };
    },
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

/** Whoever finds an agent whose process died writes this ending, maybe days later. */
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
  last: LastLine,
  calls: readonly { callId: string; tool: string; about: string; at?: number }[],
  lastAt: number | undefined,
): readonly InFlight[] {
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
  const wasKnown = before === undefined || before.cost !== undefined;
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
    ...(wasKnown && cost !== undefined ? { cost: (before?.cost ?? 0) + cost } : {}),
    durationMs: (before?.durationMs ?? 0) + (numberField(record, "durationMs") ?? 0),
    modelMs: (before?.modelMs ?? 0) + (numberField(ending, "modelMs") ?? 0),
  };
}
