import { posix, win32 } from "node:path";
import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { type ProcessIdentity, toIdentity } from "@retinue/base/storage/process-identity.ts";

/**
 * What is written down before a worktree is made or removed, and is until its agent has started or it is gone. When the process
 * dies in between, the next one knows from it which folder, branch and record of git belong together.
 */
export interface PendingWorktree {
  readonly stage: "adding" | "removing";
  readonly agentId: string;
  readonly path: string;
  readonly branch: string;
  /** The commit it begins with. */
  readonly base: string;
  /** The working tree whose ignored files it was given. */
  readonly top: string;
  /** Folders that it shares with that one by a link. */
  readonly links: readonly string[];
  /** Milliseconds since 1970. */
  readonly started: number;
  readonly owner: ProcessIdentity;
}

export function formatPending(pending: PendingWorktree): string {
  return `${JSON.stringify({ version: 1, ...pending }, undefined, 2)}\n`;
}

/** Undefined for everything that is not whole: nothing was made then. */
export function parsePending(text: string): PendingWorktree | undefined {
  const value = parseJson(text);
  if (!isRecord(value) || value.version !== 1) return undefined;
  const { stage, agentId, path, branch, base, top, links, started } = value;
  const owner = toIdentity(value.owner);
  if (stage !== "adding" && stage !== "removing") return undefined;
  if (typeof agentId !== "string" || typeof path !== "string" || !isAbsoluteAnywhere(path)) return undefined;
  if (typeof branch !== "string" || !/^retinue\/[A-Za-z0-9_-]+$/.test(branch)) return undefined;
  if (typeof base !== "string" || !/^[0-9a-f]{40,64}$/.test(base) || typeof started !== "number")
    return undefined;
  if (typeof top !== "string" || !Array.isArray(links)) return undefined;
  if (owner === undefined) return undefined;
  return {
    stage,
    agentId,
    path,
    branch,
    base,
    top,
    started,
    links: links.filter((link) => typeof link === "string"),
    owner,
  };
}

/** Records of a machine are read on it, but with this the form does not depend on where the code runs. */
function isAbsoluteAnywhere(path: string): boolean {
  return posix.isAbsolute(path) || /^(?:[A-Za-z]:|[\\/]{2})/.test(win32.parse(path).root);
}
