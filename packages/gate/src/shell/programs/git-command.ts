import type { Word } from "../model.ts";
import { hasOption, type OptionTable, optionTable, type ScannedWords } from "../word.ts";

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

/** Git looks into a submodule by another git, which obeys the submodule's own settings. */
export const noSubmodules = "--ignore-submodules=dirty";

const looksIntoSubmodules = ({ options }: ScannedWords): string | undefined =>
  options.some(
    ({ name, value }) => name === "ignore-submodules" && !/^(?:all|dirty)$/.test(value?.text ?? "all"),
  )
    ? "git looks into submodules by their own settings, which may start programs"
    : undefined;

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
  command(options, {
    readOnly: always,
    caution: (scanned) => showsSignatures(scanned) ?? looksIntoSubmodules(scanned),
    ...rest,
  });
