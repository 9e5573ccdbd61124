import { readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import { type EvalResult, type EvalSummary, readResult, summarize } from "../shared/eval-results.ts";

/** What one file of results says, for the page. */
export interface EvalRow {
  /** Seen from the folder of the studio. */
  readonly file: string;
  /** Milliseconds since 1970. */
  readonly modified: number;
  readonly costUsd: number;
  readonly summaries: readonly EvalSummary[];
  readonly failures: readonly Pick<
    EvalResult,
    "task" | "definition" | "model" | "repetition" | "reason" | "sessionId"
  >[];
  /** Why it cannot be read. */
  readonly problem?: string;
}

const suffix = ".results.jsonl";
const maxDepth = 4;
const maxFolders = 2000;
const maxFiles = 50;

/** The files of results below a folder, the newest first. Hidden folders and `node_modules` are left out. */
export async function findEvals(folder: string): Promise<readonly EvalRow[]> {
  const newest = resultFiles(folder)
    .toSorted((a, b) => b.modified - a.modified)
    .slice(0, maxFiles);
  return Promise.all(
    newest.map(async ({ path, modified }): Promise<EvalRow> => {
      const file = relative(folder, path);
      try {
        const { values } = await readLines(path);
        // The last line of a run counts, as where the evaluation continues.
        const byKey = new Map(values.flatMap((line) => readResult(line) ?? []).map((one) => [one.key, one]));
        const results = [...byKey.values()];
        return {
          file,
          modified,
          costUsd: results.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0),
          summaries: summarize(results),
          failures: results
            .filter(({ passed }) => !passed)
            .map(({ task, definition, model, repetition, reason = "", sessionId }) => ({
              task,
              definition,
              model,
              repetition,
              reason,
              sessionId,
            })),
        };
      } catch (error) {
        const problem = error instanceof Error ? error.message : String(error);
        return { file, modified, costUsd: 0, summaries: [], failures: [], problem };
      }
    }),
  );
}

/** Nearer folders come first, so that a deep tree hides nothing at its top. */
function resultFiles(folder: string): readonly { readonly path: string; readonly modified: number }[] {
  const found: { path: string; modified: number }[] = [];
  let level = [folder];
  let seen = 0;
  for (let depth = 0; depth < maxDepth && seen < maxFolders; depth += 1) {
    const next: string[] = [];
    for (const place of level.slice(0, maxFolders - seen)) {
      seen += 1;
      for (const entry of entriesOf(place)) {
        const path = join(place, entry.name);
        const isOther = entry.name.startsWith(".") || entry.name === "node_modules";
        if (entry.isDirectory() && !isOther) next.push(path);
        else if (entry.isFile() && entry.name.endsWith(suffix)) {
          const stats = statSync(path, { throwIfNoEntry: false });
          if (stats !== undefined) found.push({ path, modified: stats.mtimeMs });
        }
      }
    }
    level = next;
  }
  return found;
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
