import { isAbsolute, join, resolve } from "node:path";
import { findSteeringSetting } from "../permissions/find-steering-setting.ts";
import { findRepositoryRoot } from "../settings/find-repository-root.ts";
import { readUserName } from "./git-config.ts";
import {
  bounded,
  type GitState,
  readBranchName,
  readCommits,
  readHeadFile,
  readStatus,
} from "./git-state.ts";
import { loadBeginning } from "./load-beginning.ts";
import { type GitOutput, runGit } from "./run-git.ts";

export interface GitQuestion {
  readonly directory: string;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether a person has accepted the folder. Without that no program is started in it and only the branch is read. */
  readonly trusted: boolean;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Looks at the repository that holds a folder; undefined when there is none. At most two git processes, side by side. */
export async function gatherGitState(question: GitQuestion): Promise<GitState | undefined> {
  const { directory, environment, trusted, timeoutMs = 2000, signal } = question;
  const root = await findRepositoryRoot(directory);
  if (root === undefined) return undefined;
  const places = await gitPlaces(root);
  const headBranch = readHeadFile(await beginningOf(join(places.own, "HEAD")));
  const branch = headBranch === undefined ? {} : { branch: headBranch };
  if (!trusted) {
    return { ...branch, note: "Git itself was not asked: this folder has not been accepted as trusted." };
  }
  const steering = findSteeringSetting(root);
  if (steering !== undefined) {
    return { ...branch, note: `Git itself was not asked: its setting ${steering} here may start programs.` };
  }
  const call = {
    directory,
    repository: root,
    environment,
    timeoutMs,
    ...(signal === undefined ? {} : { signal }),
  };
  const [status, log, mainBranch, userName] = await Promise.all([
    runGit(call, ["status", "--short", "--branch", "--ignore-submodules=dirty"]),
    runGit(call, ["log", "-n", "5", "--no-decorate", "--format=%h %s"]),
    findMainBranch(places.common),
    findUserName(question, places.common),
  ]);
  const note = noteOn(status, timeoutMs);
  return {
    ...branch,
    ...(status.type === "output" ? readStatus(status.text) : {}),
    ...(log.type === "output" ? { commits: readCommits(log.text) } : {}),
    ...(mainBranch === undefined ? {} : { mainBranch }),
    ...(userName === undefined ? {} : { userName }),
    ...(note === undefined ? {} : { note }),
  };
}

function noteOn(status: GitOutput, timeoutMs: number): string | undefined {
  switch (status.type) {
    case "output":
      return undefined;
    case "absent":
      return "The program git was not found, so the state of the files is not known.";
    case "late":
      return `git status took longer than ${timeoutMs} ms, so the state of the files is not known.`;
    case "failed":
      return "git status failed, so the state of the files is not known.";
  }
}

interface GitPlaces {
  /** Holds `HEAD`; a linked worktree has one of its own. */
  readonly own: string;
  /** Holds branches and configuration. */
  readonly common: string;
}

async function gitPlaces(root: string): Promise<GitPlaces> {
  const entry = join(root, ".git");
  const [, pointer] = /^gitdir: (.+?)\s*$/.exec(await beginningOf(entry)) ?? [];
  const own = pointer === undefined ? entry : resolve(root, pointer);
  const common = (await beginningOf(join(own, "commondir"))).trim();
  if (common === "") return { own, common: own };
  return { own, common: isAbsolute(common) ? common : resolve(own, common) };
}

/** What the remote calls its head, else the usual names if there is such a branch. */
async function findMainBranch(common: string): Promise<string | undefined> {
  const head = await beginningOf(join(common, "refs", "remotes", "origin", "HEAD"));
  const [, remote] = /^ref: refs\/remotes\/origin\/(\S+)\s*$/.exec(head) ?? [];
  if (remote !== undefined) return readBranchName(remote);
  const packed = await beginningOf(join(common, "packed-refs"), 1024 * 1024);
  for (const name of ["main", "master", "trunk"]) {
    const loose = await beginningOf(join(common, "refs", "heads", name));
    if (loose !== "" || packed.includes(` refs/heads/${name}\n`)) return name;
  }
  return undefined;
}

async function findUserName({ environment, home }: GitQuestion, common: string): Promise<string | undefined> {
  const given = environment["GIT_AUTHOR_NAME"];
  if (given !== undefined && given !== "") return bounded(given);
  const configured = environment["XDG_CONFIG_HOME"];
  const shared = configured === undefined || configured === "" ? join(home, ".config") : configured;
  const [repository, ...personal] = await Promise.all(
    [join(common, "config"), join(shared, "git", "config"), join(home, ".gitconfig")].map((file) =>
      beginningOf(file, 64 * 1024),
    ),
  );
  return readUserName({ repository: repository ?? "", personal });
}

/** The first bytes of a file, or nothing when it is none. */
async function beginningOf(file: string, bytes = 4096): Promise<string> {
  try {
    return (await loadBeginning(file, bytes)).content?.toString("utf8") ?? "";
  } catch {
    return "";
  }
}
