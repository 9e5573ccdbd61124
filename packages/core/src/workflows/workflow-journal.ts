// @io
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readSync, writeSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { type OwnerLock, takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import { isSessionId, workflowFiles } from "../journal/session-files.ts";
import { progressList, type WorkflowRunState, workflowTotals } from "../protocol/workflow-state.ts";
import type { StepParts } from "./content-key.ts";

/** A finished step, as the journal has it. */
export interface FinishedStep {
  readonly agentId: string;
  /** A text, or the value for a schema. */
  readonly result: unknown;
  readonly branch?: string;
}

/** A step that was not finished, and the agent that worked on it. */
export interface StartedStep {
  readonly agentId: string;
  readonly sessionId: string;
}

/** A step that was started, as it was then. */
export interface EarlierStep {
  readonly key: string;
  readonly label: string;
  readonly parts: StepParts;
}

/** What earlier processes have done of a run. */
export interface EarlierSteps {
  readonly finished: ReadonlyMap<string, FinishedStep>;
  readonly started: ReadonlyMap<string, StartedStep>;
  /** Why the last try of a step failed. */
  readonly failed: ReadonlyMap<string, string>;
  /** Every step that was started, once, in the order in which they were. */
  readonly tried: readonly EarlierStep[];
}

export type JournalLine =
  | { readonly type: "launched"; readonly taskId: string; readonly at: string }
  | {
      readonly type: "started";
      readonly key: string;
      readonly agentId: string;
      readonly label: string;
      readonly phase?: string;
      /** What decides its outcome, so that differences can be reported later. */
      readonly parts?: StepParts;
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

/** Where the steps of one run are recorded before they are reported. */
export interface WorkflowJournal extends EarlierSteps {
  append(line: JournalLine): void;
  /** The whole state, for readers outside. */
  save(state: WorkflowRunState): void;
  /** From now on another process may continue the run. */
  close(): void;
}

/** Opens the journal of a run, with what every session of the project has of it; without files it is only remembered. */
export async function openJournal(
  runId: string,
  place: { readonly transcripts: string; readonly sessionId: string } | undefined,
): Promise<WorkflowJournal> {
  if (place === undefined)
    return {
      ...noSteps(),
      append: () => undefined,
      save: () => undefined,
      close: () => undefined,
    };
  const { transcripts, sessionId } = place;
  const files = workflowFiles(transcripts, sessionId, runId);
  // Sessions that had the run before are locked as well: continuing it in another one would pay for the same steps.
  const others = (await sessionsOfRun(transcripts, runId)).filter((session) => session !== sessionId).sort();
  const journals = [...others.map((session) => workflowFiles(transcripts, session, runId).journal)];
  const locks = takeLocks(runId, journals);
  try {
    mkdirSync(files.transcripts, { recursive: true, mode: 0o700 });
    mkdirSync(dirname(files.run), { recursive: true, mode: 0o700 });
    locks.push(...takeLocks(runId, [files.journal]));
    return await openLocked(runId, { transcripts, sessionId, locks });
  } catch (error) {
    for (const lock of locks) lock.release();
    throw error;
  }
}

/** All of them, or none. */
function takeLocks(runId: string, journals: readonly string[]): OwnerLock[] {
  const locks: OwnerLock[] = [];
  for (const journal of journals) {
    const held = takeOwnerLock(journal);
    if (held.type === "taken") locks.push(held.lock);
    else {
      for (const lock of locks) lock.release();
      throw new RetinueError("workflow-running", `Another process is working on the workflow run ${runId}.`, {
        advice: `\`retinue workflow stop ${runId}\` stops it there.`,
      });
    }
  }
  return locks;
}

async function openLocked(
  runId: string,
  {
    transcripts,
    sessionId,
    locks,
  }: { readonly transcripts: string; readonly sessionId: string; readonly locks: readonly OwnerLock[] },
): Promise<WorkflowJournal> {
  const files = workflowFiles(transcripts, sessionId, runId);
  const earlier = await readEarlierSteps(transcripts, runId);
  // Opening costs more than writing, so it stays open while the run continues.
  const descriptor = openSync(files.journal, "a+", 0o600);
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
      for (const lock of locks) lock.release();
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

interface Folded {
  readonly finished: Map<string, FinishedStep>;
  readonly started: Map<string, StartedStep>;
  readonly failed: Map<string, string>;
  readonly tried: Map<string, EarlierStep>;
}

function noSteps(): EarlierSteps {
  return { finished: new Map(), started: new Map(), failed: new Map(), tried: [] };
}

/** The journals of a run, of all sessions that had it, the newest last. */
export async function readEarlierSteps(transcripts: string, runId: string): Promise<EarlierSteps> {
  const folded: Folded = { finished: new Map(), started: new Map(), failed: new Map(), tried: new Map() };
  for (const session of (await sessionsOfRun(transcripts, runId)).toReversed()) {
    const { journal } = workflowFiles(transcripts, session, runId);
    // One that is there but cannot be read must not pass for one without steps: they would be paid again.
    if (!existsSync(journal)) continue;
    for (const line of (await readLines(journal)).values) foldLine(line, session, folded);
  }
  return { ...folded, tried: [...folded.tried.values()] };
}

function foldLine(
  { type, key, agentId, result, branch, label, parts, error }: JsonRecord,
  sessionId: string,
  { finished, started, failed, tried }: Folded,
): void {
  if (typeof key !== "string") return;
  if (type === "started" && typeof agentId === "string") {
    started.set(key, { agentId, sessionId });
    failed.delete(key);
    const step = { key, label: typeof label === "string" ? label : "", parts: readParts(parts) };
    tried.set(key, step);
  }
  // Its agent may be able to continue.
  if (type === "failed") failed.set(key, String(error));
  if (type !== "result" || typeof agentId !== "string") return;
  started.delete(key);
  failed.delete(key);
  finished.set(key, { agentId, result, ...(typeof branch === "string" ? { branch } : {}) });
}

function readParts(value: unknown): StepParts {
  if (!isRecord(value)) return {};
  return Object.fromEntries(Object.entries(value).filter(([, part]) => typeof part === "string"));
}

/** The sessions of a project that have worked on a run; the last one comes first. */
export async function sessionsOfRun(transcripts: string, runId: string): Promise<readonly string[]> {
  const sessions = (await readdir(transcripts).catch(() => [])).filter(isSessionId);
  const found = await Promise.all(
    sessions.map(async (session) => {
      const { transcripts: folder, journal } = workflowFiles(transcripts, session, runId);
      const [own, written] = await Promise.all(
        [folder, journal].map((file) => stat(file).catch(() => undefined)),
      );
      return own === undefined ? [] : [{ session, at: written?.mtimeMs ?? 0 }];
    }),
  );
  return found
    .flat()
    .sort((one, other) => other.at - one.at)
    .map(({ session }) => session);
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
    startedWith: state.startedWith,
    workflowProgress: progressList(state),
    totalTokens: totals.tokens,
    totalToolCalls: totals.toolUses,
    totalCostUsd: totals.costUsd,
  };
}
