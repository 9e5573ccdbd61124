// @io
import { readdir, readFile } from "node:fs/promises";
import { isRecord, type JsonRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { isRunId, isSessionId, sessionFiles, workflowFiles } from "../../journal/session-files.ts";

/** A run of a workflow, as its file has it. */
export interface FoundRun {
  readonly runId: string;
  readonly sessionId: string;
  readonly name: string;
  /** Interrupted: its process ended before it did, and `workflow resume` goes on with it. */
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
  const steps = Array.isArray(record["workflowProgress"]) ? record["workflowProgress"].filter(isRecord) : [];
  return {
    runId,
    sessionId,
    name,
    status: status === "running" && !hasLiveOwner(journal) ? "interrupted" : status,
    startedAt: numberOf(startTime),
    agents: numberOf(agentCount),
    done: steps.filter(({ type, state }) => type === "workflow_agent" && state === "done").length,
    costUsd: numberOf(totalCostUsd),
    tokens: numberOf(totalTokens),
    ...(typeof scriptPath === "string" ? { scriptPath } : {}),
    script: typeof script === "string" ? script : "",
    ...("args" in record ? { args: record["args"] } : {}),
    record,
  };
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
