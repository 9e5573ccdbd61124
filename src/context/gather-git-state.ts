// @io
import { execFile } from "node:child_process";
import { release, type } from "node:os";
import { basename, isAbsolute, join, resolve } from "node:path";
import { isScarce, retryWhileScarce } from "../foundation/retry-while-scarce.ts";
import { searchPathOutside } from "../foundation/search-path-outside.ts";
import { findSteeringSetting } from "../permissions/gather-shell-facts.ts";
import { hardenedGit } from "../permissions/shell/programs/hardened-git.ts";
import {
  bounded,
  type EnvironmentFacts,
  type GitState,
  localDate,
  readBranchName,
  readCommits,
  readHeadFile,
  readStatus,
} from "./build-system-prompt.ts";
import { loadBeginning } from "./find-instruction-files.ts";

export interface GitQuestion {
  readonly directory: string;
  /** The repository that holds it, where there is one. */
  readonly repositoryRoot: string | undefined;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether a person has accepted the folder. Without that no program is started in it and only the branch is read. */
  readonly trusted: boolean;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Looks at the repository of a folder; undefined when there is none. At most two git processes, side by side. */
export async function gatherGitState(question: GitQuestion): Promise<GitState | undefined> {
  const { directory, repositoryRoot: root, environment, trusted, timeoutMs = 2000, signal } = question;
  if (root === undefined) return undefined;
  const { common, head } = await gitPlaces(root);
  const headBranch = readHeadFile(head);
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
    findMainBranch(common),
    findUserName(question, common),
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
  /** What `HEAD` says; a linked worktree has one of its own. */
  readonly head: string;
  /** Holds branches and configuration. */
  readonly common: string;
}

async function gitPlaces(root: string): Promise<GitPlaces> {
  const entry = join(root, ".git");
  const [, pointer] = /^gitdir: (.+?)\s*$/.exec(await beginningOf(entry)) ?? [];
  const own = pointer === undefined ? entry : resolve(root, pointer);
  const [head = "", written = ""] = await Promise.all(
    ["HEAD", "commondir"].map((name) => beginningOf(join(own, name))),
  );
  const common = written.trim();
  if (common === "") return { head, common: own };
  return { head, common: isAbsolute(common) ? common : resolve(own, common) };
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

interface GitConfigTexts {
  /** The repository's own configuration. */
  readonly repository: string;
  /** The person's files, the stronger one last. */
  readonly personal: readonly string[];
}

/** The person's name as git would take it, or nothing where other files that we do not read could say otherwise. */
export function readUserName({ repository, personal }: GitConfigTexts): string | undefined {
  const own = readSetting(repository, "name");
  if (own !== undefined) return own;
  if ([repository, ...personal].some((text) => /^\s*\[\s*include(?:if)?\b/im.test(text))) return undefined;
  return personal.reduce<string | undefined>((found, text) => readSetting(text, "name") ?? found, undefined);
}

/** A key of the section `user`; the last one counts. */
function readSetting(text: string, key: string): string | undefined {
  let isUser = false;
  let found: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const [, section] = /^\s*\[\s*([^\]]*?)\s*\]/.exec(line) ?? [];
    if (section !== undefined) isUser = section.toLowerCase() === "user";
    const [, name = "", value = ""] = /^\s*(?:\[[^\]]*\]\s*)?([A-Za-z][\w-]*)\s*=\s*(.*)$/.exec(line) ?? [];
    if (isUser && name.toLowerCase() === key) found = plainValue(value);
  }
  return found === undefined || found === "" ? undefined : bounded(found);
}

function plainValue(value: string): string {
  const [, quoted] = /^"((?:[^"\\]|\\.)*)"/.exec(value) ?? [];
  if (quoted !== undefined) return quoted.replace(/\\(.)/g, "$1").trim();
  return value.replace(/\s*[#;].*$/, "").trim();
}

interface GitCall {
  readonly directory: string;
  /** Programs below this folder are not taken for git. */
  readonly repository: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

type GitOutput =
  | { readonly type: "output"; readonly text: string; readonly isCut: boolean }
  | { readonly type: "absent" }
  | { readonly type: "late" }
  | { readonly type: "failed" };

const maxOutput = 1024 * 1024;

/** Nothing that a repository configures may run for a mere look at it, and no lock is taken. */
const carefulArguments = [...hardenedGit, "-c", "color.ui=false"];

/** Runs git for reading, with a limit in time and output. Never rejects. */
async function runGit(call: GitCall, parameters: readonly string[]): Promise<GitOutput> {
  try {
    return await retryWhileScarce(() => runOnce(call, parameters));
  } catch {
    return { type: "failed" };
  }
}

/** Rejects only where the system has nothing to start it with. */
function runOnce(call: GitCall, parameters: readonly string[]): Promise<GitOutput> {
  const { directory, repository, environment, timeoutMs, signal } = call;
  if (signal?.aborted === true) return Promise.resolve({ type: "failed" });
  const env = {
    ...environment,
    PATH: searchPathOutside(environment["PATH"], [repository]),
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    LC_ALL: "C",
  };
  return new Promise((resolve, reject) => {
    execFile(
      "git",
      [...carefulArguments, ...parameters],
      {
        cwd: directory,
        env,
        timeout: timeoutMs,
        killSignal: "SIGKILL",
        maxBuffer: maxOutput,
        windowsHide: true,
        ...(signal === undefined ? {} : { signal }),
      },
      (error, stdout) => (isScarce(error) ? reject(error) : resolve(outcome(error, stdout))),
    );
  });
}

function outcome(error: (Error & { code?: unknown; killed?: boolean }) | null, stdout: string): GitOutput {
  if (error === null) return { type: "output", text: stdout, isCut: false };
  if (error.code === "ENOENT") return { type: "absent" };
  if (error.code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") {
    return { type: "output", text: stdout.slice(0, stdout.lastIndexOf("\n") + 1), isCut: true };
  }
  return { type: error.killed === true ? "late" : "failed" };
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
    ...(model === undefined ? {} : { model }),
  };
}
