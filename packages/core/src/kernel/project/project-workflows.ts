// @io
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, type JsonRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import type { Paths } from "@retinue/config/settings/paths.ts";
import type { SavedWorkflow } from "@retinue/config/workflows/saved-workflow.ts";
import { isRunId, isSessionId, workflowFiles } from "../../journal/session-files.ts";
import { type EarlierSteps, readEarlierSteps } from "../../workflows/workflow-journal.ts";
import type { ProjectFacts } from "./project-facts.ts";
import { submitElsewhere } from "./submit-elsewhere.ts";

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

/** The workflows of a folder, and the runs of its sessions. */
export interface ProjectWorkflows {
  list(): Promise<{
    readonly workflows: readonly SavedWorkflow[];
    readonly diagnostics: readonly Diagnostic[];
  }>;
  /** The newest first. */
  runs(): Promise<readonly FoundRun[]>;
  /** By its id, or the beginning of one that only one run has. */
  run(written: string): Promise<FoundRun>;
  /** Ends a run in whatever process it is; false where it does not run. */
  stop(written: string, options?: { readonly signal?: AbortSignal }): Promise<boolean>;
}

export function projectWorkflows(
  gather: () => Promise<ProjectFacts>,
  paths: () => Promise<Paths>,
): ProjectWorkflows {
  const runs = async (): Promise<readonly FoundRun[]> => findRuns((await paths()).transcripts);
  const run = async (written: string): Promise<FoundRun> => choose(await runs(), written);
  return {
    async list() {
      const [{ discovered }, { discoverWorkflows }] = await Promise.all([
        gather(),
        import("@retinue/config/workflows/discover-workflows.ts"),
      ]);
      const { workflows, diagnostics } = discoverWorkflows({
        paths: discovered.paths,
        plugins: discovered.plugins,
        disableBuiltin: discovered.settings.settings.plain.disableBundledSkills === true,
      });
      return { workflows: [...workflows.values()], diagnostics };
    },
    runs,
    run,
    async stop(written, { signal = new AbortController().signal } = {}) {
      const { runId, sessionId, status } = await run(written);
      if (status !== "running") return false;
      const { transcripts } = await paths();
      const { journal } = workflowFiles(transcripts, sessionId, runId);
      const workflow = { sessionId, transcript: journal };
      await submitElsewhere({ type: "stop", agent: runId }, workflow, { transcripts, signal, timeoutMs });
      return true;
    },
  };
}

const timeoutMs = 20_000;

async function findRuns(transcripts: string): Promise<readonly FoundRun[]> {
  const sessions = (await readdir(transcripts).catch(() => [])).filter(isSessionId);
  const found = await Promise.all(
    sessions.map(async (sessionId) => {
      const folder = join(transcripts, sessionId, "workflows");
      const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith(".json"));
      const read = names.map((name) => readRun(transcripts, sessionId, name.slice(0, -5)));
      return (await Promise.all(read)).flatMap((run) => run ?? []);
    }),
  );
  return found.flat().sort((one, other) => other.startedAt - one.startedAt);
}

const statuses = ["running", "completed", "failed", "killed"] as const;

async function readRun(transcripts: string, sessionId: string, runId: string): Promise<FoundRun | undefined> {
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

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

function choose(runs: readonly FoundRun[], written: string): FoundRun {
  const exact = runs.filter(({ runId }) => runId === written);
  // Of a run that several sessions had, the newest counts.
  const [found, ...others] =
    exact.length > 0 ? exact.slice(0, 1) : runs.filter(({ runId }) => runId.startsWith(written));
  if (found === undefined)
    throw new RetinueError(
      "unknown-run",
      `There is no workflow run ${JSON.stringify(written)} in this folder.`,
      {
        advice: "`retinue workflow list --runs` shows those there are.",
      },
    );
  if (others.some(({ runId }) => runId !== found.runId))
    throw new RetinueError("unclear-run", `Several runs begin with ${JSON.stringify(written)}.`, {
      advice: `Write more of the id: ${[found, ...others]
        .map(({ runId }) => runId)
        .slice(0, 5)
        .join(", ")}.`,
    });
  return found;
}
