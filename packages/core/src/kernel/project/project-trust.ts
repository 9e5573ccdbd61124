import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { projectFiles } from "@retinue/config/settings/load-mcp-entries.ts";
import {
  createTrustStore,
  type TrustAnswer,
  type TrustOutcome,
  type TrustStore,
} from "@retinue/config/settings/trust-store.ts";
import { createPathReader } from "../../tools/grep-record.ts";
import { runRipgrep } from "../../tools/run-ripgrep.ts";
import { findIsolation, type Isolation } from "./find-isolation.ts";
import { gitParts } from "./git-parts.ts";
import type { ProjectFacts } from "./project-facts.ts";
import { inOrder, type WaitingPart, waitingParts } from "./waiting-parts.ts";

export type { TrustAnswer } from "@retinue/config/settings/trust-store.ts";
export type { WaitingPart } from "./waiting-parts.ts";

export interface TrustOverview {
  readonly answer: TrustAnswer;
  /** Everything that waits for trust, or has it already, in the order of how much it can do. */
  readonly parts: readonly WaitingPart[];
  /** Files in folders below that count once work begins there. */
  readonly nested: NestedConfiguration;
  /** Whether what runs here without a question is isolated. */
  readonly isolation: Isolation;
}

/** Whether what a folder brings may run programs and widen rights. */
export interface ProjectTrust {
  /** What waits for trust, or has it. Changes nothing. */
  show(options?: { readonly pathText?: (file: string) => string }): Promise<TrustOverview>;
  /** Trusts the folder for runtimes that are created from now on, and returns the folder that was written down. */
  grant(): Promise<string>;
  /** Takes trust back; `still` says why it is trusted nevertheless. */
  revoke(): Promise<{ readonly folder: string; readonly still?: string }>;
}

export function projectTrust(gather: () => Promise<ProjectFacts>): ProjectTrust {
  return {
    async show({ pathText = (file: string) => file } = {}) {
      const facts = await gather();
      const { diagnostic } = facts.trust.trusted ? {} : facts.trust;
      if (diagnostic !== undefined) throw unreadable(diagnostic);
      const [catalog, { entries }, nested, isolation, git] = await Promise.all([
        facts.skills(),
        facts.servers(),
        findNested(facts),
        findIsolation(facts),
        gitParts({ directory: facts.discovered.paths.cwd, environment: facts.environment, pathText }),
      ]);
      const brought = { servers: entries, skills: [...catalog.list(), ...catalog.shadowed] };
      const parts = inOrder([...waitingParts({ ...facts, pathText }, brought), ...git]);
      return { answer: facts.trust, parts, nested, isolation };
    },
    async grant() {
      const { discovered } = await gather();
      return orError(await storeOf(discovered).trust(discovered.paths.cwd)).folder;
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
