// @io
import { readdir, readFile } from "node:fs/promises";
import { isRecord, type JsonRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { isRunId, isSessionId, sessionFiles, workflowFiles } from "../../journal/session-files.ts";
import type { StartedWith } from "../../protocol/workflow-state.ts";
import { type EarlierSteps, readEarlierSteps } from "../../workflows/workflow-journal.ts";

/** A run of a workflow, as its file has it. */
export interface FoundRun {
  readonly runId: string;
  readonly sessionId: string;
  readonly name: string;
  /** Interrupted: its process ended before it did, and `workflow resume` continues it. */
  readonly status: "running" | "completed" | "failed" | "killed" | "interrupted";
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly agents: number;
  readonly done: number;
  readonly costUsd: number;
  readonly tokens: number;
  /** The script that `workflow resume` runs: the file with its copy, else its text. */
  readonly scriptPath?: string;
  readonly script: string;
  readonly args?: unknown;
  readonly startedWith?: Partial<StartedWith>;
  /** The whole file. */
  readonly record: JsonRecord;
}

/** The runs of all sessions of a project, the newest first. */
export async function findRuns(transcripts: string): Promise<readonly FoundRun[]> {
  const sessions = (await readdir(transcripts).catch(() => [])).filter(isSessionId);
  const found = await Promise.all(sessions.map((sessionId) => findRunsOf(transcripts, sessionId)));
  return newestFirst(found.flat());
}

/** The runs of one session, the newest first. */
export async function findRunsOf(transcripts: string, sessionId: string): Promise<readonly FoundRun[]> {
  const { runs } = sessionFiles(transcripts, sessionId);
  const names = (await readdir(runs).catch(() => [])).filter((name) => name.endsWith(".json"));
  const read = names.map((name) => readRun(transcripts, sessionId, name.slice(0, -5)));
  return newestFirst((await Promise.all(read)).flatMap((run) => run ?? []));
}

function newestFirst(runs: readonly FoundRun[]): readonly FoundRun[] {
  return runs.toSorted((one, other) => other.startedAt - one.startedAt);
}

const statuses = ["running", "completed", "failed", "killed"] as const;

/** Undefined where there is no such run, or its file cannot be read. */
export async function readRun(
  transcripts: string,
  sessionId: string,
  runId: string,
): Promise<FoundRun | undefined> {
  if (!isRunId(runId)) return undefined;
  const { run, journal } = workflowFiles(transcripts, sessionId, runId);
  const record = parseJson(await readFile(run, "utf8").catch(() => ""));
  if (!isRecord(record)) return undefined;
  const { workflowName: name, script, scriptPath, startTime, agentCount, totalTokens, totalCostUsd } = record;
  const status = statuses.find((known) => known === record["status"]);
  if (status === undefined || typeof name !== "string") return undefined;
  const written = Array.isArray(record["workflowProgress"])
    ? record["workflowProgress"].filter(isRecord)
    : [];
  const isInterrupted = status === "running" && !hasLiveOwner(journal);
  // Its file was written a moment before it died; the journal has the last of its steps.
  const steps = isInterrupted ? withJournal(written, await readEarlierSteps(transcripts, runId)) : written;
  const isStep = ({ type }: JsonRecord): boolean => type === "workflow_agent";
  return {
    runId,
    sessionId,
    name,
    status: isInterrupted ? "interrupted" : status,
    startedAt: numberOf(startTime),
    agents: Math.max(numberOf(agentCount), steps.filter(isStep).length),
    done: steps.filter((step) => isStep(step) && step["state"] === "done").length,
    costUsd: numberOf(totalCostUsd),
    tokens: numberOf(totalTokens),
    ...(typeof scriptPath === "string" ? { scriptPath } : {}),
    script: typeof script === "string" ? script : "",
    ...("args" in record ? { args: record["args"] } : {}),
    ...(isRecord(record["startedWith"]) ? { startedWith: readStartedWith(record["startedWith"]) } : {}),
    record: { ...record, workflowProgress: steps },
  };
}

/** The steps of a file with what the journal has of them, and those that only the journal has. */
function withJournal(
  written: readonly JsonRecord[],
  { finished, failed, tried }: EarlierSteps,
): readonly JsonRecord[] {
  const stateOf = (key: unknown): JsonRecord => {
    if (typeof key !== "string") return {};
    if (finished.has(key)) return { state: "done" };
    return failed.has(key) ? { state: "error", error: failed.get(key) } : {};
  };
  const known = new Set(written.map(({ key }) => key));
  const others = tried.filter(({ key }) => !known.has(key));
  return [
    ...written.map((step) => ({ ...step, ...stateOf(step["key"]) })),
    ...others.map(({ key, label }) => ({
      type: "workflow_agent",
      label,
      key,
      state: "start",
      ...stateOf(key),
    })),
  ];
}

function readStartedWith(written: JsonRecord): Partial<StartedWith> {
  const entries = (["model", "effort", "permissionMode"] as const).flatMap((key) =>
    typeof written[key] === "string" ? [[key, written[key]]] : [],
  );
  return Object.fromEntries(entries);
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
