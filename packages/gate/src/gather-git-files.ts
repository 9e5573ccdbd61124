// @io
import { posix } from "node:path";
import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import type { PathFact } from "./call-facts.ts";
import type { PathEnvironment } from "./gather-path-facts.ts";
import { type RepositoryFacts, valuesOf } from "./git/ask-repository.ts";
import { runOwnGit } from "./git/run-own-git.ts";
import { protectionOf } from "./protection-of.ts";
import { matchesPath } from "./rules/matches-call.ts";
import type { PathOperand, ShellAnalysis, ShellUnit, TreeStep } from "./shell/model.ts";

export interface GitContext {
  readonly environment: PathEnvironment;
  /** What git says about the session's repository. */
  readonly repository: RepositoryFacts | undefined;
  readonly analysis: Pick<ShellAnalysis, "units" | "redirects">;
}

export interface GitFiles {
  /** The files that rules or guards match, or a path that is not known where they cannot be listed before. */
  readonly facts: readonly PathFact[];
  /** Every file that would change, absolute. */
  readonly replaced: readonly string[];
}

const timeLimitMs = 10_000;
const maxBytes = 16 * 1024 * 1024;
const maxCommits = 12;
const maxFacts = 8;

/** The files that a git command would change or take up, as git itself lists them. */
export async function gatherGitFiles(unit: ShellUnit, context: GitContext): Promise<GitFiles> {
  const { environment, repository: own = { type: "none" } } = context;
  const steps = (unit.tree ?? []).filter((step) => mayMatter(step, environment));
  if (steps.length === 0 || own.type === "none") return { facts: [], replaced: [] };
  const repository = own.type === "repository" ? (own.top ?? own.gitDirectory) : environment.directory;
  const unlistedFact = (use: PathFact["use"], reason: string): readonly PathFact[] => [
    { forms: [repository], use, unknown: reason, isUnlisted: true },
  ];
  const unlisted = (use: PathFact["use"], reason: string): GitFiles => ({
    facts: unlistedFact(use, reason),
    replaced: [],
  });
  const use = steps.every((step) => step.type === "list" && step.use === "read") ? "read" : "write";
  const [directory, ...others] = unit.directories;
  if (directory === undefined || directory === "unknown" || others.length > 0)
    return unlisted(use, "the folder that git runs in is not known");
  if (environment.policy.trusted !== true)
    return unlisted(use, "git does not list files in a folder that is not trusted");
  if (own.type === "unclear") return unlisted(use, `git could not report what is here: ${own.reason}`);
  if (own.steering !== undefined)
    return unlisted(
      use,
      `git does not list files by itself where the setting ${own.steering} may start programs`,
    );
  const list = createLister(posix.resolve(environment.directory, directory), environment, own.filters);
  const found: PathFact[] = [];
  const replaced: string[] = [];
  for (const step of steps) {
    const blocked = blockedBy(step, unit, context);
    const paths =
      blocked === undefined ? await pathsOf(step, { list, environment, repository, own }) : undefined;
    const written = step.type === "list" ? step.use : "write";
    if (written !== "read") replaced.push(...(paths ?? []).map((path) => posix.join(repository, path)));
    found.push(
      ...(paths === undefined
        ? unlistedFact(written, blocked ?? unlistedReason(step))
        : notable([...new Set(paths)], written, { environment, repository })),
    );
  }
  return { facts: found, replaced };
}

/** Reading matters only where rules forbid some. */
function mayMatter(step: TreeStep, { policy: { deny, ask } }: PathEnvironment): boolean {
  if (step.type === "stage") return false;
  const hasPathRules = [...deny, ...ask].some(({ rule }) => rule.specifier.type === "path");
  return hasPathRules || !(step.type === "list" && step.use === "read");
}

function unlistedReason(step: TreeStep): string {
  if (step.type === "unknown") return step.reason;
  return step.type === "pull"
    ? "what a pull changes is only known when it runs; use git fetch, then git merge in a separate call"
    : "git could not list the files";
}

/** Commands of git beside which the files that another one changes stay those that were listed. */
const companions: ReadonlySet<string> = new Set(
  "add commit push pull checkout switch restore reset rm mv clean".split(" "),
);

/** Why the files cannot be listed before: other commands of the call change what the list depends on. */
function blockedBy(
  step: TreeStep,
  unit: ShellUnit,
  { analysis: { units, redirects } }: GitContext,
): string | undefined {
  if (step.type === "unknown" || step.type === "pull") return undefined;
  const others = units.filter((other) => other !== unit && !other.readOnly);
  const reason = "other commands of the call change what it depends on; use a separate call";
  if (step.type === "patch")
    return others.length > 0 ||
      redirects.some(({ use, path }: PathOperand) => use !== "read" && path !== "/dev/null")
      ? reason
      : undefined;
  const isAlone = others.every(({ words, tree = [] }) => {
    const isGit = posix.basename(words[0]?.text ?? "") === "git";
    if (!isGit) return true;
    const isPlain = words[1] !== undefined && companions.has(words[1].text);
    return (
      isPlain &&
      tree.every(({ type }) => type === "list" || type === "pull") &&
      (step.type === "list" ||
        tree.length === 0 ||
        tree.every((each) => each.type === "list" && each.use === "read"))
    );
  });
  return isAlone ? undefined : reason;
}

/** Paths from the root of the repository; undefined where git cannot list them. */
type Lister = (words: readonly string[]) => Promise<readonly string[] | undefined>;

function createLister(
  directory: string,
  { home, policy, searchPath = process.env["PATH"] }: PathEnvironment,
  filters: readonly string[],
): Lister {
  return async (words) => {
    const result = await runOwnGit({
      directory,
      words,
      environment: { PATH: searchPath, HOME: home },
      folders: policy.workingDirectories,
      filters,
      settings: ["diff.relative=false", "diff.orderFile=/dev/null"],
      timeLimitMs,
      maxBytes,
    });
    if (result.notStarted !== undefined || result.exitCode !== 0 || result.truncated) return undefined;
    return result.stdout.split("\0").filter((line) => line !== "");
  };
}

interface Listing {
  readonly list: Lister;
  readonly environment: PathEnvironment;
  readonly repository: string;
  readonly own: RepositoryFacts;
}

async function pathsOf(step: TreeStep, listing: Listing): Promise<readonly string[] | undefined> {
  const { list } = listing;
  switch (step.type) {
    case "list":
      for (const words of step.tries) {
        const paths = await list(words);
        if (paths !== undefined) return paths;
      }
      return undefined;
    case "merge":
      return mergedPaths(step, list);
    case "replay":
      return replayedPaths(step, list);
    case "patch":
      return patchedPaths(step, listing);
    case "pull":
      return pullsPlainly(step, listing) ? [] : undefined;
    default:
      return undefined;
  }
}

const treeDifference = ["diff-tree", "-r", "--name-only", "-z"];

/** What changed from the base to theirs, and where a folder that ours renamed would lead it. */
async function mergedPaths(
  { base, theirs, ours }: Extract<TreeStep, { type: "merge" }>,
  list: Lister,
): Promise<readonly string[] | undefined> {
  const bases = base === undefined ? lines(await list(["merge-base", "--all", ours, theirs])) : [base];
  const [from] = bases ?? [];
  if (from === undefined || bases?.length !== 1) return undefined;
  const changed = await list([...treeDifference, "--no-renames", from, theirs, "--"]);
  const renamed = await list([...treeDifference, "-M50%", "-l0", "--diff-filter=R", from, ours, "--"]);
  return changed === undefined || renamed === undefined ? undefined : [...changed, ...renamed];
}

function lines(answer: readonly string[] | undefined): readonly string[] | undefined {
  return answer
    ?.join("\n")
    .split("\n")
    .filter((line) => line !== "");
}

async function replayedPaths(
  { commits, onto }: Extract<TreeStep, { type: "replay" }>,
  list: Lister,
): Promise<readonly string[] | undefined> {
  const found = lines(
    await list(["rev-list", "--parents", `--max-count=${maxCommits + 1}`, ...commits, "--"]),
  );
  if (found === undefined || found.length > maxCommits) return undefined;
  const paths: string[] = [];
  for (const line of found) {
    const [commit = "", parent, ...others] = line.split(" ");
    if (parent === undefined || others.length > 0) return undefined;
    // A revert goes the other way, with the commit as its base.
    const forward = await mergedPaths({ type: "merge", base: parent, theirs: commit, ours: onto }, list);
    const back = await mergedPaths({ type: "merge", base: commit, theirs: parent, ours: onto }, list);
    if (forward === undefined || back === undefined) return undefined;
    paths.push(...forward, ...back);
  }
  return paths;
}

/** The names that a patch has for its files, before and after it, from the root and from the folder git runs in. */
async function patchedPaths(
  { files, options }: Extract<TreeStep, { type: "patch" }>,
  { list, environment, repository }: Listing,
): Promise<readonly string[] | undefined> {
  const counted = [
    await list(["apply", "--numstat", "-z", ...options, "--", ...files]),
    await list(["apply", "--numstat", "-z", "-R", ...options, "--", ...files]),
  ];
  if (counted.includes(undefined)) return undefined;
  const names = counted.flatMap((entries) =>
    (entries ?? []).map((entry) => entry.replace(/^[-\d]+\t[-\d]+\t/, "")),
  );
  const here = posix.relative(repository, environment.directory);
  return names.flatMap((name) => [name, posix.join(here, name)]);
}

/** Whether a pull asks a remote that the repository has, and no rule keeps files from being written. */
function pullsPlainly(
  { remote }: Extract<TreeStep, { type: "pull" }>,
  { environment: { policy }, own }: Listing,
): boolean {
  const keepsFiles = [...policy.deny, ...policy.ask].some(
    ({ rule }) =>
      rule.specifier.type === "path" && toolFacts.get(rule.canonicalTool)?.restrictsUse === "write",
  );
  return !keepsFiles && (remote === undefined || valuesOf(own, `remote.${remote}.url`).length > 0);
}

/** The files that rules or guards match. */
function notable(
  paths: readonly string[],
  use: PathFact["use"],
  { environment, repository }: { readonly environment: PathEnvironment; readonly repository: string },
): readonly PathFact[] {
  const { policy } = environment;
  const facts = paths.map((path): PathFact => ({ forms: [posix.join(repository, path)], use }));
  const isMatchedBy = (rules: PathEnvironment["policy"]["deny"]) => (fact: PathFact) =>
    rules.some((rule) => matchesPath(rule, fact, { use: "restrict", policy }));
  const isProtected = ({ forms: [form = ""] }: PathFact): boolean =>
    use !== "read" && protectionOf(form, policy) !== undefined;
  return [isMatchedBy(policy.deny), isMatchedBy(policy.ask), isProtected].flatMap((matches) =>
    facts.filter(matches).slice(0, maxFacts),
  );
}
