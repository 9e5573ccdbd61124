// @io
import { release, type } from "node:os";
import { basename, join, resolve } from "node:path";
import type { ProcessResult } from "@retinue/base/foundation/start-process.ts";
import { loadBeginning } from "@retinue/config/instructions/find-instruction-files.ts";
import {
  askRepository,
  type Repository,
  type RepositoryFacts,
  valuesOf,
} from "@retinue/gate/git/ask-repository.ts";
import { type OwnGitCall, runOwnGit } from "@retinue/gate/git/run-own-git.ts";
import { noSubmodules } from "@retinue/gate/shell/programs/git-commands.ts";
import type { Wall } from "../tools/sandbox/wall.ts";
import { type EnvironmentFacts, localDate } from "./build-system-prompt.ts";
import {
  bounded,
  type GitState,
  readBranchName,
  readCommits,
  readHeadFile,
  readStatus,
} from "./git-state.ts";

export interface GitQuestion {
  readonly directory: string;
  /** The repository that holds it, where there is one. */
  readonly repositoryRoot: string | undefined;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether a person has accepted the folder. Without that no program is started in it and only the branch is read. */
  readonly trusted: boolean;
  /** Behind it git looks at the files; absent where settings switch that off. */
  readonly wall?: Wall | undefined;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Looks at the repository of a folder; undefined when there is none. Git is asked five short questions. */
export async function gatherGitState(question: GitQuestion): Promise<GitState | undefined> {
  const { directory, repositoryRoot: root, environment, trusted, timeoutMs = 2000, signal } = question;
  if (root === undefined) return undefined;
  const written = readHeadFile(await headAt(root));
  const unasked = written === undefined ? {} : { branch: written };
  if (!trusted)
    return { ...unasked, note: "Git itself was not asked: this folder has not been accepted as trusted." };
  const call = {
    environment,
    folders: [root],
    timeLimitMs: timeoutMs,
    signal,
  };
  const repository = await askRepository(directory, call);
  if (repository.type !== "repository") return { ...unasked, note: noteWithout(repository) };
  const headBranch = readHeadFile(await beginningOf(join(repository.gitDirectory, "HEAD")));
  const branch = headBranch === undefined ? {} : { branch: headBranch };
  if (repository.steering !== undefined) {
    return {
      ...branch,
      note: `Git itself was not asked: its setting ${repository.steering} here may start programs.`,
    };
  }
  const { filters } = repository;
  const isolate = await isolation(question, root);
  const ask = async (...words: readonly string[]): Promise<GitOutput> =>
    outcome(
      await runOwnGit({
        ...call,
        ...isolate,
        directory,
        words,
        filters,
        maxBytes: maxOutput,
        settings: ["color.ui=false"],
      }),
    );
  const [status, log, references] = await Promise.all([
    ask("status", "--short", "--branch", noSubmodules),
    ask("log", "-n", "5", "--no-decorate", "--format=%h %s"),
    ask("for-each-ref", "--format=%(refname) %(symref)", ...mainReferences),
  ]);
  const mainBranch = references.type === "output" ? findMainBranch(references.text) : undefined;
  const userName = environment["GIT_AUTHOR_NAME"] || valuesOf(repository, "user.name").at(-1);
  const note = noteOn(status, timeoutMs);
  return {
    ...branch,
    ...(status.type === "output" ? readStatus(status.text) : {}),
    ...(log.type === "output" ? { commits: readCommits(log.text) } : {}),
    ...(mainBranch === undefined ? {} : { mainBranch }),
    ...(userName === undefined || userName === "" ? {} : { userName: bounded(userName) }),
    ...(note === undefined ? {} : { note }),
  };
}

/** Git was configured to start nothing of the repository's; what it would start nevertheless could do nothing. */
async function isolation(
  { directory, home, environment, wall }: GitQuestion,
  root: string,
): Promise<Pick<OwnGitCall, "isolate">> {
  const start = await wall?.start();
  if (start?.type !== "ready") return {};
  const places = { directory, workingDirectories: [root], home, path: environment["PATH"] };
  return { isolate: (plain) => start.wrap(plain, places) };
}

function noteWithout(facts: Exclude<RepositoryFacts, Repository>): string {
  if (facts.type === "unclear") return `The state of the files is unknown: ${facts.reason}.`;
  return facts.hasNoGit === true
    ? "The program git was not found, so the state of the files is unknown."
    : "Git finds no repository here, so the state of the files is unknown.";
}

function noteOn(status: GitOutput, timeoutMs: number): string | undefined {
  switch (status.type) {
    case "output":
      return undefined;
    case "late":
      return `git status took longer than ${timeoutMs} ms, so the state of the files is unknown.`;
    case "failed":
      return "git status failed, so the state of the files is unknown.";
  }
}

/** What `HEAD` says at a working tree, for a name to show where git is not asked. */
async function headAt(root: string): Promise<string> {
  const entry = join(root, ".git");
  const [, pointer] = /^gitdir: (.+?)\s*$/.exec(await beginningOf(entry)) ?? [];
  return beginningOf(join(pointer === undefined ? entry : resolve(root, pointer), "HEAD"));
}

const defaultNames = ["main", "master", "trunk"];
const mainReferences = ["refs/remotes/origin/HEAD", ...defaultNames.map((name) => `refs/heads/${name}`)];

/** What the remote calls its head, else the usual names if there is such a branch. */
function findMainBranch(references: string): string | undefined {
  const found = new Map(
    references.split("\n").map((line): [string, string] => {
      const [name = "", target = ""] = line.split(" ");
      return [name, target];
    }),
  );
  const [, remote] = /^refs\/remotes\/origin\/(.+)$/.exec(found.get("refs/remotes/origin/HEAD") ?? "") ?? [];
  if (remote !== undefined) return readBranchName(remote);
  return defaultNames.find((name) => found.has(`refs/heads/${name}`));
}

/** The first bytes of a file, or nothing when it is none. */
async function beginningOf(file: string): Promise<string> {
  try {
    return (await loadBeginning(file, 4096)).content?.toString("utf8") ?? "";
  } catch {
    return "";
  }
}

type GitOutput =
  | { readonly type: "output"; readonly text: string }
  | { readonly type: "late" }
  | { readonly type: "failed" };

const maxOutput = 1024 * 1024;

function outcome({ stdout, exitCode, timedOut, truncated }: ProcessResult): GitOutput {
  if (timedOut) return { type: "late" };
  if (truncated) return { type: "output", text: stdout.slice(0, stdout.lastIndexOf("\n") + 1) };
  return exitCode === 0 ? { type: "output", text: stdout } : { type: "failed" };
}

interface EnvironmentQuestion {
  readonly directory: string;
  readonly repositoryRoot: string | undefined;
  readonly additionalDirectories?: readonly string[];
  readonly platform: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly now: Date;
  /** The id of the model that will answer. */
  readonly model?: string;
}

/** Reads what a prompt says about the machine. Starts no program. */
export function gatherEnvironment(question: EnvironmentQuestion): EnvironmentFacts {
  const {
    directory,
    repositoryRoot,
    additionalDirectories = [],
    platform,
    environment,
    now,
    model,
  } = question;
  const shell = environment["SHELL"] ?? environment["ComSpec"];
  return {
    directory,
    additionalDirectories,
    isRepository: repositoryRoot !== undefined,
    platform,
    systemVersion: `${type()} ${release()}`,
    ...(shell === undefined || shell === "" ? {} : { shell: basename(shell.replaceAll("\\", "/")) }),
    date: localDate(now),
    model,
  };
}
