import type { OperandUse, PathOperand, UrlUse } from "../shell-analysis.ts";
import {
  type FoundOption,
  hasOption,
  type OptionTable,
  optionTable,
  plainWord,
  type ScannedWords,
  type ScanOptions,
  scanOptions,
  type Word,
} from "../word.ts";
import type { TreeStep } from "./tree-steps.ts";

/** What a command with these arguments does, as far as its table or reader knows. */
export interface Judgement {
  /** Every word was understood, and it only reads. */
  readonly readOnly: boolean;
  /** Why a wildcard does not cover it: a word that is not understood, or one that starts a program or writes. */
  readonly exactOnly?: string;
  readonly wildcardHead?: string;
  /** Where present, a wildcard that reaches beyond `wildcardHead` must agree with these words. */
  readonly pinnedHead?: string;
  readonly requiredHead?: string;
  readonly paths: readonly UsedPath[];
  /** It does the same in every directory. */
  readonly anywhere?: boolean;
  readonly urls?: UrlUse;
  readonly showsTracked?: true;
  /** Its use of the files among its words is not known: see the unit. */
  readonly namesFiles?: "any" | "code" | "tool";
  /** How git uses files that the words need not name. */
  readonly tree?: readonly TreeStep[];
  /** The words that are run in place of those that were given, to switch off what the tables cannot see. */
  readonly rendered?: readonly string[];
  /** The same, in a form to which paths that are to be left out can be appended. */
  readonly limited?: readonly string[];
}

export interface UsedPath {
  readonly word: Word;
  readonly use: OperandUse;
  readonly below?: PathOperand["below"];
}

/** Reads the words of one command. */
export type JudgeCommand = (words: readonly Word[], place: Place) => Judgement;

export interface Place {
  /** The directory it runs in is known. */
  readonly isKnown: boolean;
  /** The folder of the repository, where rules forbid some of its paths. */
  readonly repository?: string | undefined;
}

/** A judgement with the first reason that was found, if any. */
export function judgement(
  readOnly: boolean,
  paths: readonly UsedPath[],
  reasons: readonly (string | undefined)[] = [],
): Judgement {
  const exactOnly = reasons.find((reason) => reason !== undefined);
  if (exactOnly === undefined) return { readOnly, paths, anywhere: true };
  return { readOnly: false, exactOnly, paths, anywhere: true };
}

export function used(words: readonly Word[], use: OperandUse): UsedPath[] {
  return words.map((word) => ({ word, use }));
}

/** The first option that starts a program or writes a file. */
export function optionRisk(program: string, { options }: Pick<ScannedWords, "options">): string | undefined {
  const found = options.find(
    ({ signs, value }) => signs.includes("!") || (signs.includes(">") && value?.text !== "-"),
  );
  if (found === undefined) return undefined;
  const option = `${found.name.length === 1 ? "-" : "--"}${found.name}`;
  return `the option ${option} of ${program} starts a program or writes a file`;
}

export function optionPaths(options: readonly FoundOption[]): UsedPath[] {
  return options.flatMap(({ signs, value }) => {
    if (value === undefined) return [];
    const paths: UsedPath[] = [];
    if (signs.includes(">")) paths.push({ word: value, use: "write" });
    if (signs.includes("<")) paths.push({ word: value, use: "read" });
    const file = signs.includes("@") ? /^(?:[^@<]*[=])?[@<](.+)$/s.exec(value.text)?.[1] : undefined;
    if (file !== undefined) paths.push({ word: { ...value, text: file, path: file }, use: "read" });
    return paths;
  });
}

/** A word whose value would show what is in the environment. */
export function environmentReason(words: readonly Word[]): string | undefined {
  const name = words.find(({ environment }) => environment !== undefined)?.environment;
  return name === undefined ? undefined : `the value of the variable ${name} is not known`;
}

/** How one subcommand of git reads its arguments. An option that is missing here is not understood. */
export interface GitCommand {
  readonly options: OptionTable;
  /** Whether these arguments only read. */
  readonly readOnly: (scanned: ScannedWords) => boolean;
  /** Files of the work tree, or paths of the repository, that it reads. */
  readonly reads: (scanned: ScannedWords, repository?: string) => readonly Word[];
  readonly writes: (scanned: ScannedWords) => readonly Word[];
  readonly caution: (scanned: ScannedWords) => string | undefined;
  /** Why only a rule that names the subcommand covers it. */
  readonly named: (scanned: ScannedWords) => string | undefined;
  /** Whether it shows contents that version control holds, under any path. */
  readonly shows: (scanned: ScannedWords) => boolean;
  /** Options that are added when it only reads, against programs that the configuration names. */
  readonly hardening: readonly string[];
  /** Whether the word after its name, where it is no option, says what it does; only there. */
  readonly verb?: "may" | "must";
}

const none = (): readonly Word[] => [];
const never = (): boolean => false;
export const always = (): boolean => true;
const calm = (): undefined => undefined;

export function command(options: string, rest: Partial<GitCommand> = {}): GitCommand {
  return {
    options: optionTable(options),
    readOnly: never,
    reads: none,
    writes: none,
    caution: calm,
    named: calm,
    shows: never,
    hardening: [],
    ...rest,
  };
}

export const diffOptions =
  "p u patch s no-patch U? unified? raw patch-with-raw patch-with-stat check stat? shortstat numstat dirstat? summary name-only name-status " +
  "compact-summary color? no-color color-words? word-diff? word-diff-regex: color-moved? no-color-moved minimal patience " +
  "histogram anchored: diff-algorithm: indent-heuristic no-indent-heuristic full-index binary abbrev? M? find-renames? C? " +
  "find-copies? find-copies-harder D B? break-rewrites? no-renames rename-empty l: diff-filter: S: G: pickaxe-all " +
  "pickaxe-regex R relative? no-relative a text ignore-cr-at-eol ignore-space-at-eol b ignore-space-change w " +
  "ignore-all-space ignore-blank-lines I: ignore-matching-lines: inter-hunk-context: W function-context exit-code quiet " +
  "no-ext-diff no-textconv ignore-submodules? src-prefix: dst-prefix: no-prefix line-prefix: ita-invisible-in-index z t c cc " +
  "ws-error-highlight: find-object: skip-to: rotate-to: stat-width: stat-name-width: stat-count: color-moved-ws: no-color-moved-ws " +
  "combined-all-paths output:> ext-diff! textconv! O:<! ";
/** Options that choose and order commits. */
export const walkOptions =
  "n: max-count: skip: since: after: until: before: author: committer: grep: grep-reflog: all-match invert-grep i " +
  "regexp-ignore-case basic-regexp E extended-regexp F fixed-strings P perl-regexp remove-empty merges no-merges min-parents? " +
  "max-parents? no-min-parents no-max-parents first-parent all branches? tags? remotes? glob: exclude: reflog oneline format? " +
  "pretty? no-abbrev abbrev-commit no-abbrev-commit graph no-graph show-linear-break? date: relative-date parents children " +
  "left-right cherry-mark cherry-pick cherry boundary topo-order date-order author-date-order reverse walk-reflogs g " +
  "simplify-by-decoration simplify-merges full-history dense sparse no-walk? encoding: expand-tabs? no-expand-tabs count " +
  "ancestry-path? left-only right-only show-pulls ignore-missing ";
export const logOptions =
  `${walkOptions}decorate? no-decorate decorate-refs: decorate-refs-exclude: source follow full-diff log-size notes? no-notes show-notes? ` +
  "q mailmap use-mailmap no-mailmap m diff-merges: no-diff-merges ";
export const reflogOptions =
  "n: max-count: skip: since: after: until: before: author: committer: grep: grep-reflog: all-match invert-grep i " +
  "regexp-ignore-case E extended-regexp F fixed-strings P perl-regexp all branches? tags? remotes? oneline format? pretty? no-abbrev " +
  "abbrev-commit no-abbrev-commit decorate? no-decorate date: relative-date no-merges merges first-parent encoding: ";
export const transport = "o: q quiet v verbose progress no-progress 4 6 ipv4 ipv6 ";
export const receiving =
  "upload-pack:! server-option: depth: shallow-since: shallow-exclude: recurse-submodules? no-recurse-submodules t tags no-tags p " +
  "prune a all append f force unshallow set-upstream k keep dry-run ";

export const noPrograms = ["--no-ext-diff", "--no-textconv"];

/** A format that shows signatures has them checked by a program. */
const showsSignatures = ({ options }: ScannedWords): string | undefined =>
  options.some(
    ({ name, value }) =>
      /^(?:format|pretty|sort)$/.test(name) &&
      /%[-+ ]?G|%\(\*?(?:signature|describe)|^-?\*?signature/.test(value?.text ?? ""),
  )
    ? "a format of git that checks signatures or describes commits starts a program"
    : undefined;

/** `REV:path` and `:0:path`, which name a path of the repository from its root, or from here with `./`. */
export const revisionPath = /^(?::[0-3]:|[^:]*:)(?![:/(!^]|[0-3]:)(.+)$/s;

/** What is shown may be a file: a path, or `REV:path` one of the past. */
export const shown = ({ operands }: ScannedWords, repository?: string): readonly Word[] =>
  operands.flatMap((word) => {
    const past = revisionPath.exec(word.text)?.[1];
    if (past === undefined) return [word];
    const isRelative = repository === undefined || /^\.\.?\//.test(past);
    const named = { ...word, text: past, path: isRelative ? past : `${repository}/${past}` };
    return word.text.startsWith(":") ? [named] : [word, named];
  });
/** Options with which nothing of the contents is shown, apart from what the command shows by itself. */
const silent = optionTable(
  `${logOptions}s no-patch raw stat shortstat numstat dirstat summary name-only name-status compact-summary color no-color ` +
    "color-moved no-color-moved color-moved-ws no-color-moved-ws minimal patience histogram diff-algorithm indent-heuristic " +
    "no-indent-heuristic full-index abbrev M find-renames C find-copies find-copies-harder D B break-rewrites no-renames " +
    "rename-empty l diff-filter R relative no-relative a text ignore-cr-at-eol ignore-space-at-eol b ignore-space-change w " +
    "ignore-all-space ignore-blank-lines inter-hunk-context exit-code quiet no-ext-diff no-textconv ignore-submodules " +
    "src-prefix dst-prefix no-prefix line-prefix ita-invisible-in-index z t r root v no-commit-id always find-object skip-to " +
    "rotate-to stat-width stat-name-width stat-count combined-all-paths clear-decorations q cached staged merge-base 0 1 2 3 " +
    "base ours theirs",
);

/** Whether an option may show contents: `-p`, `--check`, `-S` and whatever else is not known to be silent. */
export const printsPatch = ({ options }: ScannedWords): boolean =>
  options.some(({ name }) => name === "full-diff" || !silent.has(name));
export const listsNames = (scanned: ScannedWords): boolean =>
  hasOption(
    scanned,
    ..."stat shortstat numstat dirstat summary name-only name-status compact-summary s no-patch raw".split(
      " ",
    ),
  );

/** `ext::command` is an address that starts a program. */
export const address = ({ operands }: ScannedWords): string | undefined =>
  operands.some(({ text, literal }) => !literal || /^[\w+-]+::|^-/.test(text))
    ? "the address may start a program"
    : undefined;
export const first =
  (...names: string[]) =>
  ({ operands }: ScannedWords): boolean =>
    names.includes(operands[0]?.text ?? "");
export const lists = (scanned: ScannedWords): boolean =>
  !scanned.options.some(({ name }) => changing.has(name)) &&
  (scanned.operands.length === 0 || hasOption(scanned, "list", "l"));
const changing = new Set(
  "d D m M c C u f delete move copy force edit-description set-upstream-to unset-upstream create-reflog track s F file".split(
    " ",
  ),
);
export const starts = (name: string) => (): string => `git ${name} starts programs`;
export const reader = (options: string, rest: Partial<GitCommand> = {}): GitCommand =>
  command(options, { readOnly: always, caution: showsSignatures, ...rest });

/**
 * What the operands of a program are: `copy` and `move` write the last one, `archive` the first, `filter` all but the
 * first, `text` none is a file.
 */
type Operands = "none" | "text" | "read" | "write" | "remove" | "copy" | "move" | "archive" | "filter";

/** How a program reads its arguments. An option that is missing here is not understood. */
export interface ProgramSpec {
  readonly options?: string;
  /** `-5` is an option. */
  readonly numeric?: true;
  readonly letters?: ScanOptions["letters"];
  /** The first operand ends the options, at least in some versions of the program. */
  readonly optionsFirst?: true;
  readonly operands: Operands;
  /** So many operands at the start are no paths, unless one of the options `instead` is given. */
  readonly skip?: number;
  readonly instead?: string;
  readonly maxOperands?: number;
  /** Without an operand it works on the directory; `"r"`: only with that option. */
  readonly implicit?: boolean | string;
  /** It uses whole directories: always, or with one of these options. */
  readonly below?: true | string;
  /** Files that it removes or overwrites with one of these options, and all that is below them. */
  readonly removes?: readonly { readonly options: string; readonly operands: "last" | "sources" | "rest" }[];
  /** Below a directory it goes where links lead: always, or with one of these options. */
  readonly follows?: true | string;
  /** A file that is written has another name, made from that of the operand. */
  readonly renames?: (path: string) => readonly string[];
  /** Below a directory it leaves out names that begin with a dot, unless one of these options is given. */
  readonly hidden?: string;
  /** It writes into the directory, unless one of these options is given. */
  readonly landsHere?: string;
  readonly readOnly?: true;
  /** It only reads where these options are given, and no others. */
  readonly readOnlyWith?: string;
  /** Of those options, one of these must be there. */
  readonly readOnlyNeeds?: string;
  /** An option that is added when it only reads. */
  readonly added?: string;
  /** The program, with options, that runs in its place, with the operands alone, when it only reads. */
  readonly runsAs?: string;
  /** What it does depends on files of the directory it runs in. */
  readonly obeysDirectory?: true;
  /** A reason of its own why a wildcard does not cover it. */
  readonly caution?: (scanned: ScannedWords, words: readonly Word[]) => string | undefined;
}

/** Makes the reader of a program from its table. */
export function programJudge(spec: ProgramSpec): JudgeCommand {
  const table = optionTable(spec.options ?? "");
  const acts = [...table.values()].some((signs) => /[>!]/.test(signs));
  const reads = [...table.values()].some((signs) => /[<@]/.test(signs));
  return (words) => {
    const program = words[0]?.text ?? "";
    const scanned = scanOptions(words.slice(1), table, {
      numeric: spec.numeric === true,
      letters: spec.letters ?? "plain",
    });
    const skipped = hasAny(spec.instead ?? "", scanned.options) ? 0 : (spec.skip ?? 0);
    const operands = scanned.operands.slice(skipped);
    const tooMany = spec.maxOperands !== undefined && scanned.operands.length > spec.maxOperands;
    const isCertain = !scanned.loose || (spec.operands === "text" && !acts && !reads);
    const isReader =
      spec.readOnly === true ||
      (scanned.options.length > 0 &&
        scanned.options.every(({ name }) => spec.readOnlyWith?.split(" ").includes(name)) &&
        (spec.readOnlyNeeds === undefined || hasAny(spec.readOnlyNeeds, scanned.options)));
    const used = isReader && spec.operands === "write" ? readingOnly(spec) : spec;
    const judged = judgement(isReader && isCertain, usedPaths(used, scanned, operands), [
      optionRisk(program, scanned),
      // Where no option acts, it does not matter to a rule what a word turns out to be.
      scanned.loose && !acts ? undefined : scanned.unclear,
      spec.optionsFirst === true && scanned.options.some(({ late }) => late === true)
        ? `an option of ${program} is after an operand`
        : undefined,
      tooMany ? `${program} takes fewer operands when it only reads` : undefined,
      spec.operands === "none" && operands.length > 0
        ? `${program} takes no operands when it only reads`
        : undefined,
      spec.caution?.(scanned, words),
    ]);
    const hidden = environmentReason(words);
    return {
      ...judged,
      ...(spec.added !== undefined && { rendered: withOption(words, spec.added) }),
      ...(spec.runsAs !== undefined && {
        rendered: [...spec.runsAs.split(" "), "--", ...operands.map(({ rendered }) => rendered)],
      }),
      ...(hidden !== undefined && { readOnly: false }),
      anywhere: spec.obeysDirectory !== true,
    };
  };
}

/** A program that writes the files it is given, called so that it only reads them. */
function readingOnly(spec: ProgramSpec): ProgramSpec {
  return { ...spec, operands: "read" };
}

function withOption([program, ...rest]: readonly Word[], option: string): readonly string[] {
  return [program?.rendered ?? "", option, ...rest.map(({ rendered }) => rendered)];
}

function usedPaths(spec: ProgramSpec, scanned: ScannedWords, operands: readonly Word[]): UsedPath[] {
  const paths = [
    ...optionPaths(scanned.options),
    ...(spec.readOnly === true && spec.operands === "read" ? latePaths(scanned.options) : []),
    ...operandPaths(spec.operands, operands, scanned.options),
    ...operands.flatMap((word) =>
      (spec.renames?.(word.path) ?? []).map((path) => ({
        word: { ...word, path },
        use: spec.operands === "read" ? ("read" as const) : ("write" as const),
      })),
    ),
  ];
  paths.push(...removedPaths(spec, scanned.options, operands));
  if (operands.length === 0 && isImplicit(spec.implicit, scanned.options))
    paths.push({ word: plainWord("."), use: spec.operands === "write" ? "write" : "read" });
  const isBelow = spec.below === true || hasAny(spec.below ?? "", scanned.options);
  const shown = spec.hidden === undefined || hasAny(spec.hidden, scanned.options) ? "all" : "visible";
  const isFollowing = spec.follows === true || hasAny(spec.follows ?? "", scanned.options);
  const below = isFollowing ? "follow" : shown;
  const reached = isBelow ? paths.map((path) => ({ ...path, below }) as const) : paths;
  return spec.landsHere === undefined || hasAny(spec.landsHere, scanned.options)
    ? reached
    : [...reached, { word: plainWord("."), use: "write", below: "all" }];
}

function removedPaths(
  { removes = [] }: ProgramSpec,
  options: readonly FoundOption[],
  operands: readonly Word[],
): UsedPath[] {
  const places = { last: operands.slice(-1), sources: operands.slice(0, -1), rest: operands.slice(1) };
  return removes.flatMap(({ options: names, operands: which }) =>
    hasAny(names, options)
      ? used(places[which], "remove").map((path): UsedPath => ({ ...path, below: "all" }))
      : [],
  );
}

/** Where the first operand ends the options, the value of a later one is a file that is read. */
function latePaths(options: readonly FoundOption[]): UsedPath[] {
  return used(
    options.flatMap(({ late, value }) => (late === true && value !== undefined ? [value] : [])),
    "read",
  );
}

function isImplicit(implicit: ProgramSpec["implicit"], options: readonly FoundOption[]): boolean {
  return typeof implicit === "string" ? hasAny(implicit, options) : (implicit ?? false);
}

function hasAny(names: string, options: readonly FoundOption[]): boolean {
  const list = names.split(" ");
  return options.some(({ name }) => list.includes(name));
}

function operandPaths(use: Operands, operands: readonly Word[], options: readonly FoundOption[]): UsedPath[] {
  if (use === "none" || use === "text") return [];
  if (use === "archive") return [...used(operands.slice(0, 1), "write"), ...used(operands.slice(1), "read")];
  if (use === "filter") return [...used(operands.slice(0, 1), "read"), ...used(operands.slice(1), "write")];
  if (use !== "copy" && use !== "move") return used(operands, use);
  const named = options.some(
    ({ name, signs }) => (name === "t" || name === "target-directory") && signs.includes(">"),
  );
  const sources = named ? operands : operands.slice(0, -1);
  const target = named ? [] : operands.slice(-1);
  const moved = use === "move" ? used(sources, "remove") : [];
  return [...used(sources, "read"), ...moved, ...used(target, "copy")];
}
