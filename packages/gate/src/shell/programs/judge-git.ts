import type { Judgement, Place, TreeStep, UsedPath, Word } from "../model.ts";
import { hasOption, optionTable, quoteWord, type ScannedWords, scanOptions, valuesOf } from "../word.ts";
import {
  type GitCommand,
  gitChangingCommands,
  gitReadingCommands,
  gitTransport,
  hardenedGit,
  revisionPath,
  shownPaths,
  withoutFilters,
} from "./git-commands.ts";
import { environmentReason, judgement, optionPaths, optionRisk, used } from "./judgement.ts";
import { namedPaths, treeSteps } from "./tree-steps.ts";

export const gitGlobals = optionTable(
  "C: c:! exec-path?! git-dir:! work-tree:! namespace:! p! paginate! config-env:! super-prefix:! attr-source:! bare! " +
    "P no-pager no-replace-objects no-optional-locks no-lazy-fetch no-advice literal-pathspecs glob-pathspecs " +
    "noglob-pathspecs icase-pathspecs version v help!",
);

/** Settings that change only how git prints, whatever their value. */
const printingSetting =
  /^(?:color\.[\w.-]+=[\w ,#-]*|core\.(?:quotepath|abbrev|pager)=(?:cat|true|false|auto|\d+)?|pager\.\w+=(?:false|cat)|(?:log|blame)\.date=[\w-]+|log\.(?:abbrevcommit|decorate)=\w+|advice\.\w+=\w+|diff\.(?:renames|algorithm|noprefix|mnemonicprefix|context|colormoved)=\w+|status\.(?:short|branch|relativepaths|showuntrackedfiles)=\w+|column\.ui=[\w,]+)$/i;

/** The options before the subcommand, without settings that only change how git prints. */
function scanGlobals(words: readonly Word[]): ScannedWords {
  const scanned = scanOptions(words.slice(1), gitGlobals, { stopAtOperand: true });
  return {
    ...scanned,
    options: scanned.options.map((option) =>
      option.name === "c" && option.value?.literal === true && printingSetting.test(option.value.text)
        ? { ...option, name: "printing", signs: ":" }
        : option,
    ),
  };
}

/** The words of a git command with those before the subcommand taken out. */
export function withoutGitGlobals(words: readonly Word[]): readonly Word[] {
  const { taken } = scanOptions(words.slice(1), gitGlobals, { stopAtOperand: true });
  return taken === 0 ? words : [...words.slice(0, 1), ...words.slice(taken + 1)];
}

/** The folders that a git command goes to before it runs, in this order. */
export function gitFolders(words: readonly Word[]): readonly Word[] {
  return valuesOf(scanOptions(words.slice(1), gitGlobals, { stopAtOperand: true }), "C");
}

/** Whether all options before the subcommand are such that a rule need not name them. */
export function hasHarmlessGitGlobals(words: readonly Word[]): boolean {
  const scanned = scanGlobals(words);
  return optionRisk("git", scanned) === undefined && scanned.unclear === undefined;
}

const commands: ReadonlyMap<string, GitCommand> = new Map([...gitReadingCommands, ...gitChangingCommands]);

/** Reads a git command; what it obeys is the configuration of the repository it is in. */
export function judgeGit(words: readonly Word[], { isKnown, repository, filters = [] }: Place): Judgement {
  const before = scanGlobals(words);
  const [, subcommand, ...rest] = withoutGitGlobals(words);
  const elsewhere = isKnown ? undefined : "git runs the configuration of the directory it is in";
  const outer = [elsewhere, optionRisk("git", before), before.unclear];
  if (subcommand === undefined) {
    const isQuestion = before.options.some(({ name }) => name === "version" || name === "v");
    return judgement(isQuestion, [], outer);
  }
  if (!subcommand.literal) return judgement(false, [], ["the git command is only known when it runs"]);
  const command = commands.get(subcommand.text);
  if (command === undefined) return unknownCommand(subcommand.text, outer);
  const scanned = scanOptions(rest, command.options, { numeric: numbered.has(subcommand.text) });
  const files = namedPaths(subcommand.text, scanned, rest);
  const paths = [
    ...optionPaths(scanned.options),
    ...used(command.reads(scanned, repository), "read"),
    ...used(command.writes(scanned), "write"),
    ...(subcommand.text === "mv" ? moved(scanned.operands) : []),
    ...used(files.paths, files.use),
    ...used(pastPaths(scanned, repository), "read"),
  ];
  const judged = judgement(command.readOnly(scanned), paths, [
    ...outer,
    optionRisk(`git ${subcommand.text}`, scanned),
    scanned.unclear,
    command.caution(scanned),
  ]);
  const named = judged.exactOnly === undefined ? command.named(scanned) : undefined;
  const tree = treeSteps(subcommand.text, scanned, rest);
  const transport = gitTransport(subcommand.text, scanned);
  const hardened = (own: readonly Word[]): readonly string[] =>
    harden({ before, subcommand, rest: own, command, filters });
  const hasVerb = rest[0] !== undefined && rest[0] === scanned.operands[0];
  const isMisplaced = command.verb === "must" && !hasVerb;
  const readOnly = judged.readOnly && !isMisplaced && environmentReason(words) === undefined;
  return {
    ...judged,
    readOnly,
    anywhere: false,
    ...(named !== undefined && { exactOnly: named, wildcardHead: `git ${subcommand.text}` }),
    ...(tree.length > 0 && { tree: pathspecOptions(before).length === 0 ? tree : withOptions(tree, before) }),
    ...(transport !== undefined && { transport }),
    ...(((command.shows(scanned) && !namesPaths(scanned)) || offersHunks(subcommand.text, scanned)) && {
      showsTracked: true as const,
    }),
    ...(judged.exactOnly !== undefined && { namesFiles: "any" as const }),
    ...(readOnly && { rendered: hardened(rest) }),
    ...(readOnly &&
      isLimitable(subcommand.text, scanned) && {
        limited: hardened(rest.map(asCommit)),
      }),
  };
}

/** Files of the past that words name, such as the object of a tag, which another command could show then. */
function pastPaths(scanned: ScannedWords, repository: string | undefined): readonly Word[] {
  if (repository === undefined) return [];
  const values = scanned.options.flatMap(({ signs, value }) =>
    value === undefined || signs.includes("-") ? [] : [value],
  );
  const operands = [...scanned.operands, ...values].filter(
    ({ literal, text }) => literal && revisionPath.test(text),
  );
  return shownPaths({ ...scanned, operands }, repository).filter((word) => !operands.includes(word));
}

/** Commands that print what has changed, to choose from it or because nothing is done. */
function offersHunks(name: string, scanned: ScannedWords): boolean {
  if (name === "commit" && hasOption(scanned, "v", "verbose") && hasOption(scanned, "dry-run")) return true;
  return choosing.has(name) && hasOption(scanned, "p", "patch", "interactive");
}

const choosing: ReadonlySet<string> = new Set(["add", "checkout", "commit", "reset", "restore", "stash"]);

/** Where the last operand is a folder, it receives the others by their names. */
function moved(operands: readonly Word[]): UsedPath[] {
  return [...used(operands.slice(0, -1), "read"), ...used(operands.slice(-1), "copy")].map((path) => ({
    ...path,
    below: "all",
  }));
}

/** Options before the subcommand that change how it reads paths. */
function pathspecOptions({ options }: ScannedWords): readonly string[] {
  return options.flatMap(({ name }) =>
    /^(?:literal|glob|noglob|icase)-pathspecs$|^no-replace-objects$/.test(name) ? [`--${name}`] : [],
  );
}

function withOptions(steps: readonly TreeStep[], before: ScannedWords): readonly TreeStep[] {
  return steps.map((step) =>
    step.type === "list"
      ? { ...step, tries: step.tries.map((words) => [...pathspecOptions(before), ...words]) }
      : step,
  );
}

/** Whether all it shows is named by path: `git show HEAD:src/a.ts`. */
function namesPaths({ operands }: ScannedWords): boolean {
  return operands.length > 0 && operands.every(({ literal, text }) => literal && revisionPath.test(text));
}

const limitable = new Set(["diff", "log", "show", "whatchanged", "diff-tree", "grep"]);

/** Options with which it shows more than the paths it is limited to. */
const unlimited = new Set(["no-index", "L", "full-diff"]);

/** Whether paths can be left out of what it shows: no operand names an object in another way than as a commit. */
function isLimitable(name: string, { operands, options }: ScannedWords): boolean {
  return (
    limitable.has(name) &&
    !options.some((option) => unlimited.has(option.name)) &&
    operands.slice(name === "grep" ? 1 : 0).every(({ literal, text }) => literal && !/:|\^\{|^-/.test(text))
  );
}

/** A hash could be that of a file's contents; as a commit it cannot. */
function asCommit(word: Word): Word {
  return word.literal && /^[0-9a-f]{4,64}$/.test(word.text)
    ? { ...word, rendered: `'${word.text}^{commit}'` }
    : word;
}

const numbered = new Set([
  "log",
  "show",
  "whatchanged",
  "reflog",
  "shortlog",
  "stash",
  "rev-list",
  "format-patch",
]);

/** Commands without a table that print what version control holds. */
const dumping = new Set("merge-tree range-diff unpack-file pack-objects".split(" "));
/** Those that change the work tree, or what later commands bring there. */
const rewriting = new Set("read-tree sparse-checkout filter-repo update-index".split(" "));

function unknownCommand(name: string, reasons: readonly (string | undefined)[]): Judgement {
  const reason =
    reasons.find((found) => found !== undefined) ?? `git ${name} may be an alias or another program`;
  return {
    readOnly: false,
    exactOnly: reason,
    wildcardHead: `git ${name}`,
    paths: [],
    anywhere: false,
    namesFiles: "any",
    ...(dumping.has(name) && { showsTracked: true as const }),
    ...(rewriting.has(name) && {
      tree: [{ type: "unknown" as const, reason: `what git ${name} changes is not listed before` }],
    }),
  };
}

interface HardenedWords {
  readonly before: ScannedWords;
  readonly subcommand: Word;
  readonly rest: readonly Word[];
  readonly command: GitCommand;
  readonly filters: readonly string[];
}

function harden({ before, subcommand, rest, command, filters }: HardenedWords): readonly string[] {
  const kept = pathspecOptions(before);
  const verbs = command.verb !== undefined && rest[0]?.text.startsWith("-") === false ? 1 : 0;
  return [
    "git",
    ...valuesOf(before, "C").flatMap(({ rendered }) => ["-C", rendered]),
    ...valuesOf(before, "printing").flatMap(({ rendered }) => ["-c", rendered]),
    ...[...hardenedGit, ...withoutFilters(filters)].map(quoteWord),
    ...kept,
    subcommand.rendered,
    ...rest.slice(0, verbs).map(({ rendered }) => rendered),
    ...command.hardening,
    ...rest.slice(verbs).map(({ rendered }) => rendered),
  ];
}
