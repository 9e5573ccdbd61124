import { type ProcessResult, runProcess } from "../../foundation/run-process.ts";
import { searchPathOutside } from "../../foundation/search-path-outside.ts";
import { findSteeringSettingAround } from "../../permissions/gather-shell-facts.ts";

export interface GitOptions {
  /** Overrides variables of the environment. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Short deeds that must not stop halfway continue to their end. */
  readonly isUnstoppable?: boolean;
}

export type GitAnswer =
  | { readonly type: "done"; readonly text: string }
  | {
      readonly type: "failed";
      readonly reason: string;
      readonly exitCode?: number;
      readonly isMissing?: boolean;
    };

/** Runs git with everything switched off that a repository could hang onto it. Never rejects. */
export interface WorktreeGit {
  (directory: string, parameters: readonly string[], options?: GitOptions): Promise<GitAnswer>;
  readonly signal: AbortSignal;
}

export interface WorktreeGitOptions {
  /**
   * Whether a person trusts the repository. A checkout or a status runs the filters that a repository's own configuration
   * names; without trust, git is not asked about a repository with a setting that is not known to be harmless.
   */
  readonly trusted: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

const timeLimitMs = 300_000;
const maxOutput = 64 * 1024 * 1024;

export function createWorktreeGit({ environment, signal, trusted }: WorktreeGitOptions): WorktreeGit {
  const inherited = withoutRepository(environment);
  const run = async (
    directory: string,
    parameters: readonly string[],
    options: GitOptions = {},
  ): Promise<GitAnswer> => {
    const steering = trusted ? undefined : findSteeringSettingAround(directory);
    if (steering !== undefined) return { type: "failed", reason: untrustedReason(steering) };
    const result = await runProcess({
      file: "git",
      arguments: [...carefulArguments, ...parameters],
      directory,
      environment: {
        ...inherited,
        PATH: searchPathOutside(environment["PATH"], [directory]),
        ...carefulVariables,
        // Objects that are missing would be fetched, by a program that the repository names.
        ...(trusted ? {} : { GIT_ALLOW_PROTOCOL: "none", GIT_NO_LAZY_FETCH: "1" }),
        ...options.variables,
      },
      ...(options.input === undefined ? {} : { input: options.input }),
      signal: options.isUnstoppable === true ? new AbortController().signal : signal,
      timeLimitMs,
      maxBytes: maxOutput,
    });
    return answerOf(result, parameters);
  };
  return Object.assign(run, { signal });
}

export function untrustedReason(setting: string): string {
  return `this folder is not trusted, and the setting ${setting} of its repository may start programs; \`retinue trust\` trusts it`;
}

/** The one line that git ends an answer with is no part of it; a path may end in spaces. */
export function oneLine(answer: GitAnswer): string | undefined {
  return answer.type === "done" ? answer.text.replace(/\r?\n$/, "") : undefined;
}

const switches = `core.hooksPath=/dev/null core.fsmonitor=false core.splitIndex=false core.safecrlf=false
  core.untrackedCache=false submodule.recurse=false advice.detachedHead=false advice.addEmbeddedRepo=false
  gc.auto=0 maintenance.auto=false color.ui=false i18n.commitEncoding=utf-8`.split(/\s+/);

const carefulArguments = [
  "--no-pager",
  "--no-optional-locks",
  ...switches.flatMap((setting) => ["-c", setting]),
];

const carefulVariables = { GIT_TERMINAL_PROMPT: "0", GIT_LFS_SKIP_SMUDGE: "1", LC_ALL: "C", LANGUAGE: "C" };

/** Set while git runs a hook or an alias: they would make every command mean another repository or index. */
const repositoryVariables: ReadonlySet<string> = new Set(
  `GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_PREFIX
  GIT_NAMESPACE GIT_CONFIG GIT_GRAFT_FILE GIT_SHALLOW_FILE GIT_REPLACE_REF_BASE GIT_NO_REPLACE_OBJECTS
  GIT_QUARANTINE_PATH GIT_IMPLICIT_WORK_TREE GIT_INTERNAL_SUPER_PREFIX GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS
  GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS GIT_EXTERNAL_DIFF`.split(/\s+/),
);

function withoutRepository(environment: WorktreeGitOptions["environment"]): Record<string, string> {
  const entries = Object.entries(environment).flatMap(([name, value]) =>
    value === undefined || repositoryVariables.has(name.toUpperCase()) ? [] : [[name, value] as const],
  );
  return Object.fromEntries(entries);
}

function answerOf(result: ProcessResult, parameters: readonly string[]): GitAnswer {
  const command = `git ${parameters.find((word) => /^[a-z]/.test(word)) ?? ""}`;
  const failed = (reason: string, more: object = {}): GitAnswer => ({ type: "failed", reason, ...more });
  if (result.notStarted !== undefined) {
    const isMissing = result.notStarted.includes("ENOENT");
    return failed(isMissing ? "git was not found" : result.notStarted, { isMissing });
  }
  if (result.aborted) return failed(`${command} was stopped`);
  if (result.timedOut) return failed(`${command} took longer than ${timeLimitMs / 1000} seconds`);
  if (result.exitCode === undefined) return failed(`${command} was ended by ${result.signal ?? "a signal"}`);
  if (result.exitCode !== 0) {
    return failed(`${command}: ${complaint(result)}`, { exitCode: result.exitCode });
  }
  if (result.truncated) return failed(`${command} listed more than can be held`);
  return { type: "done", text: result.stdout };
}

function complaint({ stderr, exitCode }: ProcessResult): string {
  const lines = stderr
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const said = lines.find((line) => /^(fatal|error):/.test(line)) ?? lines[0];
  return said?.replace(/^(fatal|error): /, "").slice(0, 300) ?? `exit code ${exitCode}`;
}
