// @io
import { realpath } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { isInside } from "@retinue/gate/permission-policy.ts";
import type { WorkspacePlan } from "./workspace-plan.ts";

/**
 * Throws where a plan wants to work on a part of this machine's disk that this worker was not given. What a plan says of itself
 * counts for nothing here: anybody who can write to the store has written it.
 */
export async function refuseWorkspace(plan: WorkspacePlan, folders: readonly string[]): Promise<void> {
  const place = placeOf(plan);
  if (place === undefined) return;
  const real = await realpath(place).catch(() => undefined);
  // What is not there is reported by the one that opens it.
  if (real === undefined) return;
  if (real === "/") throw refused(place, "a worker does not work in the whole file system");
  if (folders.length === 0) return;
  const own = await Promise.all(folders.map((folder) => realpath(folder).catch(() => undefined)));
  const isOwn = isInside(
    real,
    own.filter((folder) => folder !== undefined),
  );
  if (!isOwn) throw refused(place, `this worker works below ${folders.join(", ")}`);
}

/** The folder of this disk that a workspace is, or is a copy of. */
function placeOf(plan: WorkspacePlan): string | undefined {
  if (plan.type !== "git") return plan.directory;
  if (plan.repository.startsWith("/")) return plan.repository;
  return plan.repository.startsWith("file://") ? fileURLToPath(plan.repository) : undefined;
}

function refused(place: string, why: string): RetinueError {
  return new RetinueError("workspace-refused", `The plan of this agent is for ${place}, but ${why}.`, {
    advice: "Give the worker that folder with --folder, or plan the agent for one that it has.",
  });
}
