import { sep } from "node:path";
import { findRealPath } from "../find-real-path.ts";
import { isInside, resolveWorkspacePath } from "../resolve-workspace-path.ts";
import type { ToolContext } from "../tool.ts";
import { fileTrouble } from "./builtin-tool.ts";

export type Located =
  | { readonly type: "located"; readonly path: string; readonly realPath: string }
  | { readonly type: "refused"; readonly reason: string };

/** Finds where a given path leads, and refuses the places whose files are no files. */
export async function locate(given: string, context: ToolContext): Promise<Located> {
  const home = context.environment["HOME"] ?? context.environment["USERPROFILE"];
  const resolved = resolveWorkspacePath(given, { directory: context.directory, home });
  if (resolved.type === "refused") return resolved;
  try {
    const realPath = await findRealPath(resolved.path);
    if (isPseudoFile(realPath) || isPseudoFile(resolved.path)) {
      return {
        type: "refused",
        reason: `${resolved.path} belongs to the system (/dev, /proc), not to a project; file tools leave it alone.`,
      };
    }
    return { type: "located", path: resolved.path, realPath };
  } catch (error) {
    return { type: "refused", reason: fileTrouble(error, resolved.path) };
  }
}

/** The same for a file that is about to be opened: it must be the one the call was allowed for. */
export async function locateDecided(given: string, context: ToolContext): Promise<Located> {
  const located = await locate(given, context);
  if (located.type === "refused" || context.approvedPaths === undefined) return located;
  if (context.approvedPaths.includes(located.realPath)) return located;
  return {
    type: "refused",
    reason: `${located.path} leads somewhere else than when this call was allowed; nothing was done.`,
  };
}

/** Reading there can block for ever, never end, or give away the secrets of a process. */
function isPseudoFile(path: string): boolean {
  return isInside(path, [`${sep}dev`, `${sep}proc`]) && !isInside(path, [`${sep}dev${sep}shm`]);
}
