import type { ProcessResult } from "@retinue/base/foundation/start-process.ts";
import type { RepositoryFacts } from "@retinue/gate/git/ask-repository.ts";
import { createRepositoryAsker } from "@retinue/gate/git/create-repository-asker.ts";
import { type OwnGitCall, runOwnGit } from "@retinue/gate/git/run-own-git.ts";

export interface GitOptions {
  /** Overrides variables of the environment. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Short operations that must not stop halfway continue to their end. */
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
  /** What git says about a folder, asked again only where something about it has changed. */
  readonly ask: (directory: string) => Promise<RepositoryFacts>;
}

export interface WorktreeGitOptions {
  /** Whether a person trusts the repository. Without that, git is not asked about one with a setting that is not plain. */
  readonly trusted: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Only for repositories of the runtime's own, which only the runtime configures: the protocols that lead to other machines. */
  readonly protocols?: string;
}

const timeLimitMs = 300_000;
const maxOutput = 64 * 1024 * 1024;

export function createWorktreeGit(made: WorktreeGitOptions): WorktreeGit {
  const { environment, signal } = made;
  const ask = askerFor(environment);
  const run = async (
    directory: string,
    parameters: readonly string[],
    options: GitOptions = {},
  ): Promise<GitAnswer> => {
    const care = await careAt(directory, parameters, made, ask);
    if (typeof care === "string") return { type: "failed", reason: care };
    const result = await runOwnGit({
      directory,
      words: parameters,
      environment,
      folders: [],
      ...care,
      settings,
      ...(options.variables === undefined ? {} : { variables: options.variables }),
      ...(options.input === undefined ? {} : { input: options.input }),
      signal: options.isUnstoppable === true ? new AbortController().signal : signal,
      timeLimitMs,
      maxBytes: maxOutput,
    });
    return answerOf(result, parameters);
  };
  return Object.assign(run, { signal, ask });
}

const askers = new WeakMap<WorktreeGitOptions["environment"], ReturnType<typeof createRepositoryAsker>>();

/** One for all operations of a runtime, which work in the same few folders again and again. */
function askerFor(environment: WorktreeGitOptions["environment"]): ReturnType<typeof createRepositoryAsker> {
  const known = askers.get(environment);
  if (known !== undefined) return known;
  const asker = createRepositoryAsker({ environment, folders: [] });
  askers.set(environment, asker);
  return asker;
}

/** What is switched off in a repository, as git itself says what it configures; a text says why git is not asked. */
async function careAt(
  directory: string,
  parameters: readonly string[],
  { trusted, protocols }: WorktreeGitOptions,
  ask: (directory: string) => Promise<RepositoryFacts>,
): Promise<Pick<OwnGitCall, "filters" | "protocols"> | string> {
  if (protocols !== undefined) return { protocols };
  if (trusted && parameters.every((word) => !contentCommands.has(word))) return {};
  const repository = await ask(directory);
  if (repository.type === "none") return {};
  if (repository.type === "unclear") return trusted ? {} : untrustedReason(repository.reason);
  const { steering, filters, ownFilters, fetchesPlainly } = repository;
  if (trusted)
    return { filters: ownFilters, ...(fetchesPlainly === true ? { protocols: "https:http:ssh:git" } : {}) };
  return steering === undefined ? { filters } : untrustedReason(`the setting ${steering}`);
}

/** Commands that read or write contents of files, which filters may change. */
const contentCommands: ReadonlySet<string> = new Set(
  "add reset status checkout checkout-index update-index diff-files diff-index diff stash restore apply merge cherry-pick".split(
    " ",
  ),
);

function untrustedReason(what: string): string {
  return `this folder is not trusted, and its repository may start programs (${what}); \`retinue trust\` trusts it`;
}

/** The one line that git ends an answer with is no part of it; a path may end in spaces. */
export function oneLine(answer: GitAnswer): string | undefined {
  return answer.type === "done" ? answer.text.replace(/\r?\n$/, "") : undefined;
}

const settings =
  `core.splitIndex=false core.safecrlf=false core.untrackedCache=false core.trustctime=true core.checkStat=default
  advice.detachedHead=false advice.addEmbeddedRepo=false color.ui=false i18n.commitEncoding=utf-8 safe.bareRepository=all`.split(
    /\s+/,
  );

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
  if (result.truncated) return failed(`${command} listed more than can be processed`);
  return { type: "done", text: result.stdout };
}

function complaint({ stderr, exitCode }: ProcessResult): string {
  const lines = stderr
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const message = lines.find((line) => /^(fatal|error):/.test(line)) ?? lines[0];
  return message?.replace(/^(fatal|error): /, "").slice(0, 300) ?? `exit code ${exitCode}`;
}
