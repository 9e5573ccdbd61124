import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Paths } from "@retinue/config/settings/paths.ts";
import type { SavedWorkflow } from "@retinue/config/workflows/list-workflow-files.ts";
import { workflowFiles } from "../../journal/session-files.ts";
import { type FoundRun, findRuns } from "../workflows/find-runs.ts";
import type { ProjectFacts } from "./project-facts.ts";
import { submitElsewhere } from "./submit-elsewhere.ts";

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
        advice: "`retinue workflow list --runs` lists them.",
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
