import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { projectFiles } from "@retinue/config/settings/load-mcp-entries.ts";
import {
  createTrustStore,
  type TrustAnswer,
  type TrustOutcome,
  type TrustStore,
} from "@retinue/config/settings/trust-store.ts";
import { askRepository } from "@retinue/gate/git/ask-repository.ts";
import { type GitSetting, isPlainSetting, partsOf } from "@retinue/gate/git/git-settings.ts";
import { createPathReader } from "../../tools/grep-record.ts";
import { runRipgrep } from "../../tools/run-ripgrep.ts";
import { findIsolation, type Isolation } from "./find-isolation.ts";
import type { LockPlace } from "./lock/gather-parts.ts";
import { judgeLock, type LockJudgement } from "./lock/judge-lock.ts";
import type { ProjectFacts } from "./project-facts.ts";
import { inOrder, type WaitingPart, waitingParts } from "./waiting-parts.ts";

export type { TrustAnswer } from "@retinue/config/settings/trust-store.ts";
export type { WaitingPart } from "./waiting-parts.ts";

export interface WaitingForTrust {
  readonly answer: TrustAnswer;
  /** Everything that waits for trust, or has it already, in the order of how much it can do. */
  readonly parts: readonly WaitingPart[];
  /** How the files differ from what the lock of the project accepts, where it has one. */
  readonly lock: LockJudgement;
}

export interface TrustOverview extends WaitingForTrust {
  /** Files in folders below that count once work begins there. */
  readonly nested: NestedConfiguration;
  /** Whether what runs here without a question is isolated. */
  readonly isolation: Isolation;
}

/** Whether what a folder brings may run programs and widen rights. */
export interface ProjectTrust {
  /** What waits for trust, or has it. Changes nothing. */
  show(options?: { readonly pathText?: (file: string) => string }): Promise<TrustOverview>;
  /** The same of this folder alone, without trying anything. */
  waiting(options?: { readonly pathText?: (file: string) => string }): Promise<WaitingForTrust>;
  /** Only whether it is trusted, and how it differs from its lock. */
  changes(): Promise<Pick<TrustOverview, "answer" | "lock">>;
  /**
   * Trusts the folder for runtimes that are created from now on, and returns the folder that was written down. Of differences from a
   * lock it accepts those that were shown, or else those there are now.
   */
  grant(shown?: LockJudgement): Promise<string>;
  /** Takes trust back; `still` says why it is trusted nevertheless. */
  revoke(): Promise<{ readonly folder: string; readonly still?: string }>;
}

export function projectTrust(gather: () => Promise<ProjectFacts>): ProjectTrust {
  return {
    async show({ pathText } = {}) {
      const facts = await gather();
      const [waiting, nested, isolation] = await Promise.all([
        findWaiting(facts, pathText),
        findNested(facts),
        findIsolation(facts),
      ]);
      return { ...waiting, nested, isolation };
    },
    waiting: async ({ pathText } = {}) => findWaiting(await gather(), pathText),
    async changes() {
      const facts = await gather();
      return { answer: facts.trust, lock: await judgeLock(placeOf(facts)) };
    },
    async grant(shown) {
      const facts = await gather();
      const { discovered } = facts;
      const lock = shown ?? (await judgeLock(placeOf(facts)));
      if (lock.type === "broken") throw brokenLock(lock);
      const accepted = lock.type === "compared" ? lock.hashes : [];
      const known = { accepted, hasLock: lock.type === "compared" };
      return orError(await storeOf(discovered).trust(discovered.paths.cwd, known)).folder;
    },
    async revoke() {
      const { discovered } = await gather();
      const store = storeOf(discovered);
      const { folder } = orError(await store.untrust(discovered.paths.cwd));
      const after = await store.isTrusted(discovered.paths.cwd);
      return { folder, ...(after.trusted ? { still: after.why } : {}) };
    },
  };
}

async function findWaiting(facts: ProjectFacts, pathText = (file: string) => file): Promise<WaitingForTrust> {
  const { diagnostic } = facts.trust.trusted ? {} : facts.trust;
  if (diagnostic !== undefined) throw unreadable(diagnostic);
  const [catalog, { entries }, git, lock] = await Promise.all([
    facts.skills(),
    facts.servers(),
    gitParts({ directory: facts.discovered.paths.cwd, environment: facts.environment, pathText }),
    judgeLock(placeOf(facts)),
  ]);
  const brought = { servers: entries, skills: [...catalog.list(), ...catalog.shadowed] };
  const parts = inOrder([...waitingParts({ ...facts, pathText }, brought), ...git]);
  return { answer: facts.trust, parts, lock };
}

function placeOf({ discovered: { paths }, environment: env, platform }: ProjectFacts): LockPlace {
  return { cwd: paths.cwd, home: paths.home, env, platform };
}

/** Differences from a lock that cannot be read are unknown, and so nothing can be accepted. */
function brokenLock({ diagnostics: [first] }: Extract<LockJudgement, { readonly type: "broken" }>) {
  return new RetinueError(
    "lock-broken",
    `Trust was not changed: ${first?.message ?? "the lock is broken."}`,
    {
      advice: first?.advice ?? "`retinue agents lock` rewrites it.",
    },
  );
}

function storeOf({ paths }: ProjectFacts["discovered"]): TrustStore {
  return createTrustStore({ stateFile: paths.stateFile, home: paths.home });
}

/** Those that this folder does not take its settings from anyway. */
async function findNested({ discovered: { paths } }: ProjectFacts): Promise<NestedConfiguration> {
  const { project, local } = paths.settings;
  const known = new Set([...project, ...local, ...projectFiles(paths)]);
  const { files, isCut } = await findNestedConfiguration(paths.cwd);
  return { files: files.filter((file) => !known.has(file)), isCut };
}

function unreadable({ message, advice }: Diagnostic): RetinueError {
  return new RetinueError(
    "state-file",
    `Trust cannot be read: ${message}`,
    advice === undefined ? {} : { advice },
  );
}

function orError(outcome: TrustOutcome): Extract<TrustOutcome, { readonly type: "stored" }> {
  if (outcome.type === "stored") return outcome;
  const advice = outcome.diagnostic?.advice;
  throw new RetinueError(
    "trust-refused",
    `Trust was not changed: ${outcome.why}.`,
    advice === undefined ? {} : { advice },
  );
}

export interface NestedConfiguration {
  /** Absolute paths, sorted. */
  readonly files: readonly string[];
  /** The search was ended before it was done. */
  readonly isCut: boolean;
}

const maxFiles = 200;
const timeLimitMs = 5_000;
const names = ["settings.json", "settings.local.json"];

/** Settings and server lists in folders below the project, which count when work begins there. */
export async function findNestedConfiguration(root: string): Promise<NestedConfiguration> {
  const files: string[] = [];
  const readPaths = createPathReader();
  const patterns = [...names.map((name) => `**/.claude/${name}`), "**/.mcp.json"];
  const ending = await runRipgrep({
    arguments: [
      ...["--files", "--null", "--hidden", "--no-ignore", "--no-messages"],
      ...patterns.map((pattern) => `--glob=${pattern}`),
      ...["--glob=!**/node_modules", "--glob=!**/.git", "--", root],
    ],
    directory: root,
    signal: new AbortController().signal,
    timeLimitMs,
    take(text) {
      files.push(...readPaths(text));
      return files.length >= maxFiles ? "enough" : "more";
    },
  });
  return { files: files.sort(), isCut: ending.type !== "finished" };
}

interface GitQuestion {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly pathText: (file: string) => string;
}

/** What every repository has; nothing of it says more than where it is and whom it exchanges commits with. */
const usual =
  /^(?:core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)|remote\.(?:url|fetch|pushurl)|branch\.(?:remote|merge)|user\.(?:name|email)|submodule\.(?:url|active))$/;
/** Plain for a git that only reads, which switches them off; another git starts what they name. */
const programs =
  /^(?:core\.(?:hookspath|fsmonitor|pager|editor|sshcommand|askpass)|credential\.helper|gpg\.(?:program|defaultkeycommand)|alias\..*|pager\..*)$/;

/** The settings of git that a folder brings, as git itself reads them, with what they include. */
export async function gitParts({
  directory,
  environment,
  pathText,
}: GitQuestion): Promise<readonly WaitingPart[]> {
  const repository = await askRepository(directory, { environment, folders: [directory] });
  if (repository.type === "unclear")
    return [{ kind: "runs", name: "git", value: repository.reason, from: pathText(directory) }];
  if (repository.type === "none") return [];
  const shortName = ({ key }: GitSetting): string => {
    const { section, name } = partsOf(key);
    return `${section}.${name}`;
  };
  return repository.own
    .filter((setting) => !usual.test(shortName(setting)))
    .map((setting): WaitingPart => {
      const isRunning = !isPlainSetting(setting, new Set()) || programs.test(shortName(setting));
      return {
        kind: isRunning ? "runs" : "setting",
        name: `git ${setting.key}`,
        value: setting.value,
        from: pathText(setting.file ?? repository.gitDirectory),
      };
    });
}
