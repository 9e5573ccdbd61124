// @io
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import type { Receipt } from "../../conversation/receipt.ts";
import { findSession } from "../../journal/find-sessions.ts";
import { readEarlierPlans } from "../../journal/journaled-plan.ts";
import { isSessionId } from "../../journal/session-files.ts";
import { type FoundTask, findTasks } from "../../tasks/find-tasks.ts";
import { findOwnWorktrees, type OwnWorktree } from "../../tasks/worktree/find-own-worktrees.ts";
import type { WorktreeRepository } from "../../tasks/worktree/find-worktree-repository.ts";
import { oneLine, type WorktreeGit } from "../../tasks/worktree/worktree-git.ts";

/** A child whose branch is still there, with or without its worktree. */
export interface KeptBranch {
  readonly agent: string;
  readonly agentType: string;
  readonly description: string;
  readonly prompt: string;
  readonly name?: string | undefined;
  readonly parentId?: string | undefined;
  /** How its last run ended, or that it did not. */
  readonly state: FoundTask["state"];
  readonly receipt?: Receipt;
  readonly branch: string;
  readonly worktree?: OwnWorktree;
}

interface Place {
  readonly git: WorktreeGit;
  readonly repository: WorktreeRepository;
  readonly transcripts: string;
}

const prefix = "refs/heads/retinue/";

/** The children of a session whose branches are kept, in the order in which they were started. */
export async function findKeptBranches(place: Place, sessionId: string): Promise<readonly KeptBranch[]> {
  const branches = await branchesByAgent(place);
  const tasks = await findTasks(place.transcripts, { sessionId });
  const kept = tasks.filter(({ id }) => branches.has(id));
  const found = await Promise.all(kept.map((task) => describe(task, branches.get(task.id))));
  return found.flat().sort((a, b) => a.startedAt - b.startedAt);
}

/** The session that is meant: by id, the beginning of it, or title; the newest that has something to merge when nothing is named. */
export async function findMergeSession(place: Place, written: string | undefined): Promise<string> {
  const ids = [...(await branchesByAgent(place)).keys()];
  const exact = async (id: string) =>
    (await findTasks(place.transcripts, { idPrefix: id })).filter((task) => task.id === id);
  const tasks = (await Promise.all(ids.map(exact))).flat();
  const [newest] = [...tasks].sort((a, b) => b.lastSignAt - a.lastSignAt);
  if (written === undefined) {
    if (newest !== undefined) return newest.sessionId;
    throw new RetinueError("nothing-to-merge", "No session of this folder has a worktree with changes.", {
      advice: "Agents with `isolation: worktree` work in one, which is kept if they changed something.",
    });
  }
  const sessions = [...new Set(tasks.map(({ sessionId }) => sessionId))];
  const meant = sessions.filter((id) => id.startsWith(written));
  if (meant.length === 1 && meant[0] !== undefined) return meant[0];
  const found = await findSession(place.transcripts, written);
  if (found.type === "found") return found.session.id;
  // A session of a program may have children alone, and a merge that was cut off may have taken the last branch of theirs.
  const folders = (await readdir(place.transcripts).catch(() => [])).filter(
    (name) => isSessionId(name) && name.startsWith(written),
  );
  if (folders.length === 1 && folders[0] !== undefined) return folders[0];
  if (meant.length > 1 || found.type === "ambiguous")
    throw new RetinueError("session-ambiguous", `Several sessions match ${JSON.stringify(written)}.`, {
      advice: "Pass more of the id; `retinue sessions list` shows the ids.",
    });
  throw new RetinueError(
    "session-missing",
    `There is no session ${JSON.stringify(written)} in this folder.`,
    {
      advice: "`retinue sessions list` lists them.",
    },
  );
}

type Branches = ReadonlyMap<string, Pick<KeptBranch, "branch" | "worktree">>;

/** By the mark of the worktree; where that is gone, by the name of the branch, which ends in the id of its agent. */
async function branchesByAgent({ git, repository }: Place): Promise<Branches> {
  const { commonDirectory, main } = repository;
  const listed = await git(main, ["for-each-ref", "--format=%(refname)", prefix]);
  if (listed.type === "failed")
    throw new RetinueError("no-merge", `The branches could not be read: ${listed.reason}.`);
  const names = listed.text.split("\n").filter((name) => name.startsWith(prefix));
  const branches = new Map<string, Pick<KeptBranch, "branch" | "worktree">>();
  for (const name of names) {
    const branch = name.slice("refs/heads/".length);
    for (const id of possibleIds(basename(name))) branches.set(id, { branch });
  }
  for (const worktree of await findOwnWorktrees(commonDirectory)) {
    const { agentId, branch, path } = worktree.mark;
    const isThere = (await stat(path).catch(() => undefined))?.isDirectory() === true;
    const hasBranch = names.includes(`refs/heads/${branch}`);
    if (hasBranch) branches.set(agentId, isThere ? { branch, worktree } : { branch });
  }
  return branches;
}

/** `slug-id`, and both may have hyphens. */
function possibleIds(name: string): readonly string[] {
  const parts = name.split("-");
  return parts.slice(1).map((_, at) => parts.slice(at + 1).join("-"));
}

async function describe(
  task: FoundTask,
  kept: Pick<KeptBranch, "branch" | "worktree"> | undefined,
): Promise<readonly (KeptBranch & { readonly startedAt: number })[]> {
  if (kept === undefined) return [];
  const { values } = await readLines(task.transcript);
  const prompt = readEarlierPlans(values)[0]?.prompt ?? "";
  const receipt = receiptIn(values);
  const { id: agent, agentType, description, name, parentId, state, startedAt = 0 } = task;
  return [
    {
      agent,
      agentType,
      description,
      name,
      parentId,
      state,
      startedAt,
      prompt,
      ...kept,
      ...(receipt === undefined ? {} : { receipt }),
    },
  ];
}

/** That of its last run. */
function receiptIn(records: readonly JsonRecord[]): Receipt | undefined {
  const ending = records.findLast(({ runEnding }) => isRecord(runEnding))?.runEnding;
  const receipt = isRecord(ending) ? ending["receipt"] : undefined;
  const isReceipt =
    isRecord(receipt) && typeof receipt["status"] === "string" && Array.isArray(receipt["checks"]);
  // Written by the runtime itself in this form.
  return isReceipt ? (receipt as unknown as Receipt) : undefined;
}

/** The commit that a branch began with: from its mark, its record of where it has been, or the commit that was made for it. */
export async function findBase(
  { git, repository }: Pick<Place, "git" | "repository">,
  { branch, worktree }: Pick<KeptBranch, "branch" | "worktree">,
): Promise<string | undefined> {
  if (worktree !== undefined) return worktree.mark.base;
  const { main, commonDirectory } = repository;
  const reference = `refs/heads/${branch}`;
  const log = await readFile(join(commonDirectory, "logs", reference), "utf8").catch(() => "");
  // Only a record that goes back to the beginning says where that was.
  const began = /^0+ ([0-9a-f]{40,64}) /.exec(log)?.[1];
  if (began !== undefined) return began;
  const fork = oneLine(await git(main, ["merge-base", "HEAD", reference]));
  if (fork === undefined || fork === "") return undefined;
  const words = ["log", "--reverse", "--format=%H %ce %s", `${fork}..${reference}`, "--"];
  const [first = ""] = (oneLine(await git(main, words)) ?? "").split("\n");
  const [commit, email, ...subject] = first.split(" ");
  const isSnapshot = email === "retinue@localhost" && subject.join(" ").startsWith("Uncommitted changes as ");
  return isSnapshot ? commit : fork;
}
