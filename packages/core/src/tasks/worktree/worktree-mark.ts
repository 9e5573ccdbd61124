import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import type { ProcessIdentity } from "@retinue/base/storage/process-identity.ts";

/** Where the mark lies in what git keeps about one worktree; it goes when git forgets the worktree. */
export const markFile = "retinue-worktree.json";

/** What Retinue writes down about a worktree it made. Without it nothing is ever removed. */
export interface WorktreeMark {
  readonly agentId: string;
  /** Shows this worktree from a later one of the same name. */
  readonly token: string;
  readonly path: string;
  /** The folder's own number on its disk, so that another folder in its place is noticed. */
  readonly folder: string;
  readonly branch: string;
  /** The commit it began with. */
  readonly base: string;
  /** Milliseconds since 1970. */
  readonly started: number;
  /** Set when its agent is done and it was kept. */
  readonly ended?: number;
  readonly owner: ProcessIdentity;
}

export function formatMark(mark: WorktreeMark): string {
  return `${JSON.stringify({ version: 1, ...mark }, undefined, 2)}\n`;
}

/** Of an agent, or of a session that asked for a worktree by name. */
const ownBranch = /^(?:retinue\/[A-Za-z0-9_-]+|worktree-[\w.+-]+)$/;

/** Undefined for everything that is not a whole mark: such a worktree counts as foreign. */
export function parseMark(text: string): WorktreeMark | undefined {
  const value = parseJson(text);
  if (!isRecord(value) || value["version"] !== 1 || !isRecord(value["owner"])) return undefined;
  const { agentId, token, path, folder, branch, base, started, ended, owner } = value;
  const { pid, machine, started: ownerStarted } = owner;
  if (!isText(agentId) || !isText(token) || !isText(path) || !isText(folder)) return undefined;
  if (!isText(branch) || !ownBranch.test(branch)) return undefined;
  if (!isText(base) || !/^[0-9a-f]{40,64}$/.test(base) || typeof started !== "number") return undefined;
  if (ended !== undefined && typeof ended !== "number") return undefined;
  if (typeof pid !== "number" || typeof machine !== "string" || typeof ownerStarted !== "string") {
    return undefined;
  }
  return {
    agentId,
    token,
    path,
    folder,
    branch,
    base,
    started,
    ended,
    owner: { pid, machine, started: ownerStarted },
  };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
