import { escapeNames } from "@retinue/base/foundation/escape-control-tags.ts";

/** What the runtime vouches for: `verified` only where every check ran on the tree as it is and passed. */
export type ReceiptStatus = "verified" | "failed-check" | "unverified";

/** One run of one check. */
export interface CheckRun {
  /** `command`, or `output` for a result of a certain form that was asked for. */
  readonly kind: "command" | "output";
  readonly run: string;
  readonly passed: boolean;
  readonly exitCode?: number;
  readonly durationMs: number;
  /** The end of what it wrote. */
  readonly output: string;
  /** Why it counts as failed, where its exit code does not say it. */
  readonly reason?: string;
  /** It could not be started at all, so that the agent can do nothing about it. */
  readonly notRun?: true;
  /** It failed on this very tree before it passed; that run. */
  readonly flaky?: Pick<CheckRun, "exitCode" | "durationMs" | "output" | "reason">;
}

/** What accompanies every result: checks, the tree they were run on, and facts of the run. */
export interface Receipt {
  readonly status: ReceiptStatus;
  /** The last run of each check; empty where none was named. */
  readonly checks: readonly CheckRun[];
  /** Of the tree that was checked: a git tree with untracked files, or a hash over the changed files. */
  readonly tree?: { readonly kind: "git" | "files"; readonly digest: string };
  /** How often a failed check went back to the agent. */
  readonly retries: number;
  /** The first thousand. */
  readonly changedFiles: readonly string[];
  /** How often each tool was used. */
  readonly tools: Readonly<Record<string, number>>;
  readonly model: string;
  /** Over the definition that the agent was decided from. */
  readonly definition?: string;
  /** Facts from the record of the run, each as one sentence. */
  readonly notes: readonly string[];
}

/** The end of an output that a receipt keeps. */
export const maxCheckOutput = 2000;
/** So many files are named in a receipt. */
export const maxChangedFiles = 1000;

/** The status that checks add up to. A check that could not run is a failed one; no checks verify nothing. */
export function statusOf(checks: readonly CheckRun[], isStale: boolean): ReceiptStatus {
  if (checks.length === 0) return "unverified";
  return !isStale && checks.every(({ passed }) => passed) ? "verified" : "failed-check";
}

/** A check that failed before and passes now on the same tree is reported with both runs; `earlier` are those on this tree. */
export function withFlaky(now: CheckRun, earlier: readonly CheckRun[]): CheckRun {
  const before = earlier.find(({ run, kind }) => run === now.run && kind === now.kind);
  if (!now.passed || before === undefined) return now;
  if (before.flaky !== undefined) return { ...now, flaky: before.flaky };
  if (before.passed || before.notRun === true) return now;
  const { exitCode, durationMs, output, reason } = before;
  return {
    ...now,
    flaky: {
      durationMs,
      output,
      exitCode,
      reason,
    },
  };
}

/** What an agent did, in order; enough to state facts. */
export interface RunFacts {
  readonly calls: readonly { readonly tool: string; readonly effect: string; readonly command?: string }[];
  readonly changedFiles: readonly string[];
  readonly readFiles: readonly string[];
  readonly mayEdit: boolean;
  readonly text: string;
}

const testWords =
  /\b(?:test|tests|spec|check|verify|vitest|jest|mocha|pytest|tox|rspec|phpunit|lint|typecheck|tsc)\b/i;

/** Facts about a run. They state what happened and judge no text. */
export function factsOf({ calls, changedFiles, readFiles, mayEdit, text }: RunFacts): readonly string[] {
  const notes: string[] = [];
  const lastEdit = calls.findLastIndex(({ effect }) => effect === "edit");
  const commands = calls.filter(({ command }) => command !== undefined);
  const lastTest = calls.findLastIndex(({ command }) => command !== undefined && testWords.test(command));
  if (lastEdit !== -1) {
    if (commands.length === 0) notes.push("Files were edited and no command was run.");
    else if (lastTest === -1) notes.push("Files were edited and no test was run.");
    else if (lastTest < lastEdit) notes.push("The last test run is older than the last edit.");
  }
  if (mayEdit) {
    const seen = [...changedFiles, ...readFiles];
    const unknown = namedFiles(text).filter(
      (name) => !seen.some((path) => path === name || path.endsWith(`/${name}`)),
    );
    // A command may have read or written them.
    if (unknown.length > 0 && commands.length === 0)
      notes.push(
        `The text names files that were neither read nor changed: ${unknown.slice(0, 5).join(", ")}.`,
      );
  }
  return notes;
}

/** A file that differs from what was there when the work began. */
export interface ChangedFile {
  readonly path: string;
  readonly isNew: boolean;
}

/** Where programs find what a check by their name runs. */
const manifests: readonly (readonly [program: RegExp, file: RegExp])[] = [
  [/\b(?:npm|pnpm|yarn|bun)\b/, /^package\.json$/],
  [/\bg?make\b/, /^(?:GNUm|M|m)akefile$/],
  [/\bjust\b/, /^\.?[jJ]ustfile$/],
  [/\btox\b/, /^tox\.ini$/],
  [/\bgradlew?\b/, /\.gradle(?:\.kts)?$/],
  [/\bmvnw?\b/, /^pom\.xml$/],
];

const testFile = /(?:^|\/)(?:tests?|specs?|__tests__)\/|[._-](?:test|spec)s?\.\w+$|(?:^|\/)test_[^/]*\.py$/;

/** What the checks run and the work has changed: scripts, where their programs find commands, and tests that were there. */
export function changesOfChecks(
  checks: readonly string[],
  changes: readonly ChangedFile[],
): readonly string[] {
  if (checks.length === 0) return [];
  const run = new Set(checks.flatMap(filesRun));
  const isRead = (name: string): boolean =>
    manifests.some(([program, file]) => file.test(name) && checks.some((check) => program.test(check)));
  const found = changes.filter(
    ({ path, isNew }) =>
      run.has(path) || isRead(path.split("/").at(-1) ?? "") || (!isNew && testFile.test(path)),
  );
  const more = found.length > 5 ? ` and ${found.length - 5} more` : "";
  const names = escapeNames(found.slice(0, 5).map(({ path }) => path));
  return found.length === 0 ? [] : [`What the checks run was changed: ${names.join(", ")}${more}.`];
}

const interpreters =
  /^(?:.*\/)?(?:sh|bash|dash|zsh|ksh|source|\.|node|tsx|deno|python[\d.]*|ruby|perl|php|osascript|pwsh)$/;

/** The files of a command line that are programs, as it is written. */
function filesRun(command: string): readonly string[] {
  return command.split(/[;&|()\n]+/).flatMap((part) => {
    const words = part.split(/[\s'"`]+/).filter((word) => word !== "" && !/^\w+=/.test(word));
    const [program = ""] = words;
    const file = interpreters.test(program) ? words.slice(1).find((word) => !word.startsWith("-")) : program;
    return file === undefined ? [] : [file.replace(/^(?:\.\/)+/, "")];
  });
}

/** Paths that a text has between backticks: with a folder and an ending. */
function namedFiles(text: string): readonly string[] {
  const found = [...text.slice(0, 20_000).matchAll(/`((?:[\w.@-]{1,80}\/){1,12}[\w.@-]{1,80}\.\w{1,8})`/g)];
  return [...new Set(found.map((match) => (match[1] ?? "").replace(/^\.\//, "")))];
}

export const unverifiedLine = "Result: unverified (no checks are named for this agent).";

/** The receipt for a parent's model: one line, and a line for each check that failed. */
export function receiptText({ status, checks, notes, tree }: Receipt): string {
  if (checks.length === 0 && notes.length === 0) return "";
  const failed = checks.filter(({ passed }) => !passed);
  const flaky = checks.filter((check) => check.flaky !== undefined);
  const lines = [
    checks.length === 0
      ? unverifiedLine
      : `Result: ${status}; ${checks.length - failed.length} of ${checks.length} checks passed${tree === undefined ? "" : ` on tree ${tree.digest.slice(0, 12)}`}.`,
    ...failed.map((check) => `Failed: ${shown(check)}${whyFailed(check)}`),
    ...flaky.map((check) => `Flaky: ${shown(check)} failed and then passed on the same tree.`),
    ...notes,
  ];
  return lines.join("\n");
}

function shown({ run, kind }: CheckRun): string {
  const short = run.length > 120 ? `${run.slice(0, 120)}…` : run;
  return kind === "output" ? "the form of the result" : `\`${short}\``;
}

export function whyFailed({ reason, exitCode }: Pick<CheckRun, "reason" | "exitCode">): string {
  if (reason !== undefined) return `: ${reason}`;
  return exitCode === undefined ? "" : ` with exit code ${exitCode}`;
}
