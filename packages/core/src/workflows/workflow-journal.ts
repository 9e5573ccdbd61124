// @io
import { closeSync, fstatSync, mkdirSync, openSync, readSync, writeSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import { isSessionId, workflowFiles } from "../journal/session-files.ts";
import { progressList, type WorkflowRunState, workflowTotals } from "../protocol/workflow-state.ts";

/** A finished step, as the journal has it. */
export interface FinishedStep {
  readonly agentId: string;
  /** A text, or the value for a schema. */
  readonly result: unknown;
  readonly branch?: string;
}

/** What earlier processes have done of a run. */
export interface EarlierSteps {
  readonly finished: ReadonlyMap<string, FinishedStep>;
  /** Steps without an end, with the agent that worked on each. */
  readonly begun: ReadonlyMap<string, string>;
}

export type JournalLine =
  | { readonly type: "launched"; readonly taskId: string; readonly at: string }
  | {
      readonly type: "started";
      readonly key: string;
      readonly agentId: string;
      readonly label: string;
      readonly phase?: string;
    }
  | {
      readonly type: "result";
      readonly key: string;
      readonly agentId: string;
      readonly result: unknown;
      readonly toolsUsed?: number;
      readonly branch?: string;
    }
  | { readonly type: "failed"; readonly key?: string; readonly agentId?: string; readonly error: string };

/** Where the steps of one run are written down before anybody learns of them. */
export interface WorkflowJournal extends EarlierSteps {
  append(line: JournalLine): void;
  /** The whole state, for those who look at it from outside. */
  save(state: WorkflowRunState): void;
  /** From now on another process may go on with the run. */
  close(): void;
}

/** Opens the journal of a run, with what every session of the project has of it; without files it is only remembered. */
export async function openJournal(
  runId: string,
  place: { readonly transcripts: string; readonly sessionId: string } | undefined,
): Promise<WorkflowJournal> {
  if (place === undefined)
    return {
      finished: new Map(),
      begun: new Map(),
      append: () => undefined,
      save: () => undefined,
      close: () => undefined,
    };
  const { transcripts, sessionId } = place;
  const files = workflowFiles(transcripts, sessionId, runId);
  mkdirSync(files.transcripts, { recursive: true, mode: 0o700 });
  mkdirSync(dirname(files.run), { recursive: true, mode: 0o700 });
  const held = takeOwnerLock(files.journal);
  if (held.type === "held")
    throw new RetinueError("workflow-running", `Another process works on the workflow run ${runId}.`, {
      advice: `\`retinue workflow stop ${runId}\` ends it there.`,
    });
  // Opening costs more than writing, so it stays open while the run goes on.
  const descriptor = openSync(files.journal, "a+", 0o600);
  const earlier = await readEarlierSteps(transcripts, runId, sessionId);
  let isOpen = true;
  // What a crash has cut off ends here, so that it does not swallow the next line.
  if (!endsWithLine(descriptor)) writeSync(descriptor, "\n");
  return {
    ...earlier,
    append(line) {
      // A step that ends after its run was given up is not this journal's any more.
      if (isOpen) writeSync(descriptor, `${JSON.stringify(line)}\n`);
    },
    save: (state) => replaceWholeFile(files.run, `${JSON.stringify(runFileOf(state), undefined, 2)}\n`),
    close() {
      if (!isOpen) return;
      isOpen = false;
      closeSync(descriptor);
      held.lock.release();
    },
  };
}

function endsWithLine(descriptor: number): boolean {
  const { size } = fstatSync(descriptor);
  if (size === 0) return true;
  const last = Buffer.alloc(1);
  readSync(descriptor, last, 0, 1, size - 1);
  return last[0] === 10;
}

/** The journals of a run: of the session that continues it, and of others that had it. */
async function readEarlierSteps(
  transcripts: string,
  runId: string,
  sessionId: string,
): Promise<EarlierSteps> {
  const finished = new Map<string, FinishedStep>();
  const begun = new Map<string, string>();
  for (const session of await sessionsOfRun(transcripts, runId)) {
    const { journal } = workflowFiles(transcripts, session, runId);
    const lines = await readLines(journal).catch(() => undefined);
    for (const line of lines?.values ?? []) foldLine(line, { finished, begun, isOwn: session === sessionId });
  }
  return { finished, begun };
}

function foldLine(
  { type, key, agentId, result, branch }: JsonRecord,
  {
    finished,
    begun,
    isOwn,
  }: {
    readonly finished: Map<string, FinishedStep>;
    readonly begun: Map<string, string>;
    readonly isOwn: boolean;
  },
): void {
  if (typeof key !== "string") return;
  // The agent of another session is not continued in this one.
  if (type === "started" && typeof agentId === "string" && isOwn) begun.set(key, agentId);
  if (type === "failed") begun.delete(key);
  if (type !== "result" || typeof agentId !== "string") return;
  begun.delete(key);
  finished.set(key, { agentId, result, ...(typeof branch === "string" ? { branch } : {}) });
}

/** The sessions of a project that have worked on a run. */
export async function sessionsOfRun(transcripts: string, runId: string): Promise<readonly string[]> {
  const sessions = (await readdir(transcripts).catch(() => [])).filter(isSessionId);
  const has = await Promise.all(
    sessions.map((session) =>
      readdir(workflowFiles(transcripts, session, runId).transcripts).then(
        () => true,
        () => false,
      ),
    ),
  );
  return sessions.filter((_session, at) => has[at]);
}

/** What the file of a run says, in the words existing viewers read. */
export function runFileOf(state: WorkflowRunState): JsonRecord {
  const { runId, taskId, script, scriptPath, args, logs, phases, startedAt, endedAt, error } = state;
  const totals = workflowTotals(state);
  return {
    runId,
    timestamp: new Date(endedAt ?? startedAt).toISOString(),
    taskId,
    script,
    scriptPath,
    args,
    ...(state.result === undefined ? {} : { result: JSON.parse(state.result) }),
    agentCount: totals.agents,
    logs,
    failures: state.failures,
    durationMs: (endedAt ?? startedAt) - startedAt,
    summary: state.description,
    workflowName: state.name,
    status: state.status,
    error,
    errorLine: state.errorLine,
    startTime: startedAt,
    ...(phases.length === 0 ? {} : { phases: phases.map(({ title, detail }) => ({ title, detail })) }),
    defaultModel: state.defaultModel,
    workflowProgress: progressList(state),
    totalTokens: totals.tokens,
    totalToolCalls: totals.toolUses,
    totalCostUsd: totals.costUsd,
  };
}
