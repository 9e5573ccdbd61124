import type { GitTransport, Word } from "../model.ts";
import { hasOption, type OptionTable, optionTable, type ScannedWords, sliceWord, valuesOf } from "../word.ts";
import { strategyRisk } from "./tree-steps.ts";

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
const always = (): boolean => true;
const noReason = (): undefined => undefined;

function command(options: string, rest: Partial<GitCommand> = {}): GitCommand {
  return {
    options: optionTable(options),
    readOnly: never,
    reads: none,
    writes: none,
    caution: noReason,
    named: noReason,
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
const walkOptions =
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
const reflogOptions =
  "n: max-count: skip: since: after: until: before: author: committer: grep: grep-reflog: all-match invert-grep i " +
  "regexp-ignore-case E extended-regexp F fixed-strings P perl-regexp all branches? tags? remotes? oneline format? pretty? no-abbrev " +
  "abbrev-commit no-abbrev-commit decorate? no-decorate date: relative-date no-merges merges first-parent encoding: ";
const transport = "o: q quiet v verbose progress no-progress 4 6 ipv4 ipv6 ";
const receiving =
  "upload-pack:! server-option: depth: shallow-since: shallow-exclude: recurse-submodules? no-recurse-submodules t tags no-tags p " +
  "prune a all append f force unshallow set-upstream k keep dry-run ";

const noPrograms = ["--no-ext-diff", "--no-textconv"];

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
export const shownPaths = ({ operands }: ScannedWords, repository?: string): readonly Word[] =>
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
const printsPatch = ({ options }: ScannedWords): boolean =>
  options.some(({ name }) => name === "full-diff" || !silent.has(name));
const listsNames = (scanned: ScannedWords): boolean =>
  hasOption(
    scanned,
    ..."stat shortstat numstat dirstat summary name-only name-status compact-summary s no-patch raw".split(
      " ",
    ),
  );

/** `ext::command` is an address that starts a program. */
const checkRemote = ({ operands }: ScannedWords): string | undefined =>
  operands.some(({ text, literal }) => !literal || /^[\w+-]+::|^-/.test(text))
    ? "the address may start a program"
    : undefined;
const hasSubcommand =
  (...names: string[]) =>
  ({ operands }: ScannedWords): boolean =>
    names.includes(operands[0]?.text ?? "");
const lists = (scanned: ScannedWords): boolean =>
  !scanned.options.some(({ name }) => changing.has(name)) &&
  (scanned.operands.length === 0 || hasOption(scanned, "list", "l"));
const changing = new Set(
  "d D m M c C u f delete move copy force edit-description set-upstream-to unset-upstream create-reflog track s F file".split(
    " ",
  ),
);
const starts = (name: string) => (): string => `git ${name} starts programs`;
const reader = (options: string, rest: Partial<GitCommand> = {}): GitCommand =>
  command(options, {
    readOnly: always,
    caution: (scanned) => showsSignatures(scanned) ?? looksIntoSubmodules(scanned),
    ...rest,
  });

const configNames =
  /^(?:user|core|remote|branch|init|push|pull|merge|rebase|commit|tag|diff|status|log)\.[\w./-]+$/i;

/** `git config` reads in one form only: one action, and the name of one plain setting. */
function readsConfig({ options, operands }: ScannedWords): boolean {
  const actions = options.filter(({ name }) => name.startsWith("get"));
  const isVerb = actions.length === 0 && operands[0]?.text === "get";
  // Without an action one name is read, and a name with a value is set.
  if (actions.length > 1 || hasOption({ options }, "l", "list", "get-urlmatch", "name-only")) return false;
  const rest = isVerb ? operands.slice(1) : operands;
  const [name] = rest;
  return rest.length === 1 && name?.literal === true && configNames.test(name.text);
}

/** A format may show the contents of what a name leads to, which need not be a commit. */
const showsRaw = (scanned: ScannedWords): boolean =>
  valuesOf(scanned, "format").some(({ text, literal }) => !literal || /%\(\*?raw/.test(text));

/** Options of `git worktree list`. */
const listing = "porcelain v verbose z ";

function hasOnly({ options }: ScannedWords, names: string): boolean {
  const table = optionTable(names);
  return options.every(({ name }) => table.has(name));
}

/** Subcommands that can do no more than read, in the forms that are listed. */
export const gitReadingCommands: readonly (readonly [string, GitCommand])[] = [
  [
    "status",
    reader(
      "s short b branch show-stash porcelain? long u? untracked-files? ignore-submodules? ignored? z null column? no-column " +
        "ahead-behind no-ahead-behind renames no-renames find-renames?",
      { hardening: [noSubmodules] },
    ),
  ],
  [
    "diff",
    reader(`${diffOptions}q cached staged merge-base no-index 1 2 3 0 base ours theirs`, {
      reads: shownPaths,
      shows: (scanned) => !listsNames(scanned) || printsPatch(scanned),
      hardening: [...noPrograms, noSubmodules],
    }),
  ],
  [
    "log",
    reader(`${diffOptions}${logOptions}L: clear-decorations`, {
      reads: (scanned, repository) => [
        ...shownPaths(scanned, repository),
        // The file in `-L from,to:file`.
        ...valuesOf(scanned, "L").map((word: Word) => sliceWord(word, word.text.lastIndexOf(":") + 1)),
      ],
      shows: printsPatch,
      hardening: noPrograms,
    }),
  ],
  [
    "show",
    reader(`${diffOptions}${logOptions}`, {
      reads: shownPaths,
      shows: (scanned) => !listsNames(scanned) || printsPatch(scanned),
      hardening: noPrograms,
    }),
  ],
  [
    "whatchanged",
    reader(`${diffOptions}${logOptions}`, { reads: shownPaths, shows: printsPatch, hardening: noPrograms }),
  ],
  [
    "reflog",
    reader(reflogOptions, {
      shows: ({ unclear }) => unclear !== undefined,
      readOnly: (scanned) => scanned.operands.length === 0 || hasSubcommand("show")(scanned),
      hardening: noPrograms,
      verb: "may",
    }),
  ],
  ["rev-list", reader(`${walkOptions}objects disk-usage? quiet max-age: min-age: abbrev? header`)],
  [
    "shortlog",
    reader(
      "n numbered s summary e email w? c committer group: format? pretty? since: after: until: before: author: no-merges merges all",
    ),
  ],
  ["cherry", reader("v verbose abbrev?")],
  [
    "diff-tree",
    reader(`${diffOptions}r root m v no-commit-id always pretty? format?`, {
      shows: printsPatch,
      reads: shownPaths,
      hardening: noPrograms,
    }),
  ],
  ...["diff-index", "diff-files"].map((name): [string, GitCommand] => [
    name,
    reader(`${diffOptions}${name === "diff-index" ? "cached m merge-base" : "q 0 1 2 3 base ours theirs"}`, {
      reads: shownPaths,
      shows: printsPatch,
      hardening: [...noPrograms, noSubmodules],
    }),
  ]),
  [
    "blame",
    reader(
      "L: l t s e p w c b n f M? C? porcelain line-porcelain incremental root show-stats date: since: color-lines color-by-age " +
        "show-email show-name show-number abbrev? progress no-progress score-debug minimal ignore-rev: contents:<! ignore-revs-file:<! S:<! reverse",
      { reads: shownPaths, hardening: ["--no-textconv"] },
    ),
  ],
  ["annotate", reader("L: l t e p date:", { reads: shownPaths, hardening: ["--no-textconv"] })],
  [
    "grep",
    reader(
      "i ignore-case w word-regexp v invert-match h H full-name E extended-regexp G basic-regexp F fixed-strings P perl-regexp n " +
        "line-number column l files-with-matches name-only L files-without-match z null o only-matching c count color? no-color " +
        "break heading p show-function W function-context A: B: C: after-context: before-context: context: m: max-count: e:- and or not all-match q quiet cached untracked " +
        "a text I max-depth: r recursive no-recursive threads: no-textconv exclude-standard O?! open-files-in-pager?! f:<! textconv! no-index! ext-grep!",
      {
        reads: (scanned, repository) =>
          shownPaths(
            { ...scanned, operands: scanned.operands.slice(hasOption(scanned, "e") ? 0 : 1) },
            repository,
          ),
        shows: always,
      },
    ),
  ],
  [
    "cat-file",
    reader("t s e p mailmap use-mailmap no-mailmap textconv! filters! batch?! batch-check?!", {
      reads: shownPaths,
      shows: (scanned) => !hasOption(scanned, "t", "s", "e"),
    }),
  ],
  [
    "rev-parse",
    reader(
      "abbrev-ref? abbrev? short? symbolic symbolic-full-name verify q quiet show-toplevel show-prefix show-cdup git-dir " +
        "absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository all " +
        "branches? tags? remotes? not default: git-path: " +
        "path-format? revs-only no-revs flags no-flags show-object-format?",
    ),
  ],
  [
    "ls-files",
    reader(
      "c cached d deleted o others i ignored s stage m modified k killed u unmerged t v f z x: exclude: X:< exclude-from:< exclude-standard " +
        "error-unmatch full-name abbrev? directory no-empty-directory eol deduplicate sparse format: with-tree: resolve-undo debug",
    ),
  ],
  ["ls-tree", reader("d r t l z name-only name-status object-only full-name full-tree abbrev? long format:")],
  ["merge-base", reader("a all octopus independent is-ancestor fork-point")],
  ["name-rev", reader("tags refs: exclude: all name-only undefined no-undefined always")],
  ["show-ref", reader("head heads tags d dereference s hash? verify abbrev? q quiet")],
  [
    "for-each-ref",
    reader(
      "count: sort: format: points-at: merged:~ no-merged:~ contains:~ no-contains:~ ignore-case color? s shell p perl python tcl",
      { shows: showsRaw },
    ),
  ],
  ["count-objects", reader("v verbose H human-readable")],
  ["check-ignore", reader("q quiet v verbose n non-matching no-index")],
  ["check-attr", reader("a all cached z")],
  [
    "describe",
    reader(
      "all tags contains abbrev? candidates: exact-match long match: exclude: always first-parent debug",
    ),
  ],
  ["version", reader("build-options")],
  [
    "symbolic-ref",
    command("short q quiet recurse no-recurse d! delete! m:!", {
      readOnly: ({ operands }) => operands.length === 1,
    }),
  ],
  ["var", command("l!", { readOnly: ({ operands }) => operands.length === 1 })],
  [
    "show-branch",
    reader(
      "a all r remotes current topo-order date-order sparse more? list merge-base independent no-name sha1-name topics color? " +
        "no-color reflog? g?",
    ),
  ],
  [
    "branch",
    command(
      "a r v l list all remotes verbose show-current contains:~ no-contains:~ merged:~ no-merged:~ sort: points-at: format: color? " +
        "no-color abbrev? no-abbrev column? no-column i ignore-case q quiet d D m M c C u: f set-upstream-to: delete move copy force " +
        "edit-description! track? no-track t create-reflog unset-upstream recurse-submodules!",
      { readOnly: lists, shows: showsRaw },
    ),
  ],
  [
    "tag",
    command(
      "l list n? sort: contains:~ no-contains:~ merged:~ no-merged:~ points-at: format: color? column? no-column i ignore-case F:< file:< m:- " +
        "message:- u: local-user: d v! verify! delete f force a annotate s sign e! edit! cleanup: create-reflog",
      {
        readOnly: (scanned) =>
          lists(scanned) && !hasOption(scanned, "m", "message", "a", "annotate", "sign", "local-user"),
        shows: showsRaw,
      },
    ),
  ],
  [
    "remote",
    command("v verbose all push", {
      readOnly: ({ operands }) =>
        operands.length === 0 || (operands.length === 2 && operands[0]?.text === "get-url"),
      caution: checkRemote,
      named: ({ operands: [verb] }) =>
        verb === undefined || /^(?:get-url|show)$/.test(verb.text)
          ? undefined
          : "git remote changes where commits come from",
    }),
  ],
  [
    "stash",
    command(`${diffOptions}${logOptions}k keep-index no-keep-index include-untracked message: index`, {
      readOnly: (scanned) =>
        hasSubcommand("list", "show")(scanned) && hasOnly(scanned, diffOptions + logOptions),
      shows: printsPatch,
      hardening: noPrograms,
      verb: "must",
    }),
  ],
  [
    "worktree",
    command(`${listing}b: B: d f force detach checkout no-checkout lock reason: track no-track`, {
      readOnly: (scanned) =>
        scanned.operands.length === 1 && hasSubcommand("list")(scanned) && hasOnly(scanned, listing),
      verb: "must",
      writes: ({ operands }) => (operands[0]?.text === "add" ? operands.slice(1, 2) : []),
    }),
  ],
  [
    "config",
    command(
      "get get-all get-regexp get-urlmatch l list show-origin show-scope global system local worktree z null name-only type: default: f:! file:! blob:! e! edit!",
      {
        readOnly: readsConfig,
        caution: (scanned) =>
          readsConfig(scanned) || hasOption(scanned, "l", "list", "get", "get-all", "get-regexp")
            ? undefined
            : "a changed git configuration can start programs",
      },
    ),
  ],
];

/** Of the commands that start programs, those that print what version control holds. */
const dumpers = new Set(["difftool", "fast-export", "checkout-index"]);

/** Subcommands that change something, with the options that a wildcard in a rule covers. */
export const gitChangingCommands: readonly (readonly [string, GitCommand])[] = [
  [
    "fetch",
    command(`${transport}${receiving}j: jobs: n u multiple atomic P prune-tags`, { caution: checkRemote }),
  ],
  [
    "pull",
    command(
      `${transport}${receiving}j? jobs? n s: strategy: X: strategy-option: rebase? r? no-rebase ff no-ff ff-only autostash no-autostash commit no-commit no-edit edit stat squash allow-unrelated-histories`,
      { caution: (scanned) => checkRemote(scanned) ?? strategyRisk(scanned) },
    ),
  ],
  [
    "push",
    command(
      `${transport}receive-pack:! exec:! recurse-submodules: no-recurse-submodules n dry-run tags prune all f force set-upstream u atomic repo:! force-with-lease? force-if-includes d delete mirror follow-tags no-verify verify thin porcelain signed?`,
      { caution: checkRemote },
    ),
  ],
  [
    "ls-remote",
    command(
      "upload-pack:! exec:! o: server-option: q quiet t tags heads refs exit-code get-url symref sort: h",
      { caution: checkRemote },
    ),
  ],
  [
    "clone",
    command(
      `${transport}upload-pack:! server-option: depth: j: jobs: recurse-submodules?! no-tags shallow-since: shallow-exclude: n u:! c:! config:! template:! b: branch: single-branch no-single-branch reference: separate-git-dir:> recursive! l local no-hardlinks s shared! bare mirror origin: no-checkout filter: sparse`,
      {
        caution: checkRemote,
        writes: ({ operands }) => operands.slice(1, 2),
        // Of a repository on this machine it copies everything.
        shows: ({ operands: [source] }) => !/^[^/]*:/.test(source?.text ?? ""),
      },
    ),
  ],
  [
    "init",
    command("template:! separate-git-dir:> b: initial-branch: q quiet bare! shared?!", {
      writes: ({ operands }) => operands.slice(0, 1),
    }),
  ],
  [
    "archive",
    command(
      "o:> output:> exec:! remote:! format: prefix: add-file:<! add-virtual-file: v verbose l list worktree-attributes 0 1 9",
      { shows: always },
    ),
  ],
  [
    "format-patch",
    command(
      `${diffOptions}${logOptions}o:> output-directory:> signature-file:<! in-reply-to: stdout N numbered n no-numbered k keep-subject signoff s cover-letter subject-prefix: v: start-number: base:`,
      { shows: always },
    ),
  ],
  [
    "bisect",
    command("", {
      caution: (scanned) =>
        hasSubcommand("start", "good", "bad", "new", "old", "skip", "reset", "log", "next", "terms")(scanned)
          ? undefined
          : "git bisect starts a program",
    }),
  ],
  [
    "submodule",
    command(
      "q quiet cached files recursive init remote N no-fetch checkout merge rebase f force depth: j: jobs: single-branch " +
        "no-single-branch recommend-shallow no-recommend-shallow progress filter:",
      {
        caution: (scanned) =>
          hasSubcommand("status", "summary", "update", "init", "sync")(scanned)
            ? undefined
            : "git submodule starts programs or fetches other repositories",
      },
    ),
  ],
  [
    "rebase",
    command(
      "x:! exec:! i interactive onto: s: strategy: X: C: root autostash no-autostash continue abort skip quit edit-todo! q quiet v verbose stat n no-stat no-verify verify f force-rebase no-ff keep-base autosquash no-autosquash update-refs reapply-cherry-picks rebase-merges? committer-date-is-author-date signoff",
      { caution: strategyRisk },
    ),
  ],
  [
    "commit",
    command(
      "F:< file:< t:< template:< m:- message:- C: reuse-message: author: date: a all amend no-edit p patch S? gpg-sign? no-gpg-sign q " +
        "quiet v verbose fixup: squash: s signoff n no-verify verify allow-empty allow-empty-message pathspec-from-file:< cleanup: " +
        "trailer: dry-run short branch porcelain long z status no-status o only i include reset-author u? untracked-files? no-post-rewrite e edit",
    ),
  ],
  [
    "merge",
    command(
      "F:< file:< m:- message:- s: strategy: X: strategy-option: S? ff no-ff ff-only commit no-commit squash no-squash stat n no-stat log? q quiet v verbose abort continue quit no-edit e edit allow-unrelated-histories no-verify autostash signoff into-name:",
      { caution: strategyRisk },
    ),
  ],
  [
    "apply",
    command(
      "directory:> unsafe-paths! build-fake-ancestor:> exclude: include: p: C: stat numstat summary check index cached 3 3way R reverse reject z whitespace: v verbose q quiet recount inaccurate-eof allow-empty",
      {
        reads: ({ operands }) => operands,
      },
    ),
  ],
  [
    "am",
    command(
      "directory:> S? p: C: exclude: include: patch-format: 3 3way k keep s signoff i! interactive! continue abort skip quit q quiet reject whitespace:",
    ),
  ],
  [
    "bundle",
    command("q quiet all branches tags progress", {
      writes: ({ operands }) => (operands[0]?.text === "create" ? operands.slice(1, 2) : []),
      shows: always,
      named: ({ operands }) => (operands[0]?.text === "create" ? "git bundle writes a file" : undefined),
    }),
  ],
  [
    "add",
    command(
      "pathspec-from-file:< chmod: A all u update n dry-run v verbose f force i! interactive! p patch e! edit! N intent-to-add refresh ignore-errors ignore-missing sparse renormalize no-all ignore-removal",
    ),
  ],
  [
    "checkout",
    command(
      "b: B: pathspec-from-file:<! q quiet f force t track? no-track l d detach m merge conflict: ours theirs p patch orphan: progress no-progress guess no-guess overlay no-overlay recurse-submodules!",
    ),
  ],
  [
    "switch",
    command(
      "c: C: create: force-create: d detach f force discard-changes m merge q quiet t track? no-track orphan: guess no-guess progress no-progress",
    ),
  ],
  [
    "restore",
    command(
      "s: source: S staged W worktree p patch q quiet ours theirs m merge ignore-unmerged overlay no-overlay",
    ),
  ],
  ["reset", command("soft mixed hard merge keep q quiet p patch N")],
  [
    "revert",
    command("n no-commit m: mainline: s signoff no-edit e edit continue abort skip quit S? X: strategy:", {
      caution: strategyRisk,
    }),
  ],
  [
    "cherry-pick",
    command(
      "n no-commit m: mainline: s signoff x e edit ff continue abort skip quit S? X: strategy: allow-empty keep-redundant-commits",
      { caution: strategyRisk },
    ),
  ],
  [
    "rm",
    command("f force n dry-run r cached ignore-unmatch q quiet sparse", {
      writes: ({ operands }) => operands,
    }),
  ],
  ["mv", command("f force k n dry-run v verbose sparse", { writes: ({ operands }) => operands })],
  ["clean", command("d f force n dry-run q quiet e: exclude: x X", { writes: ({ operands }) => operands })],
  ["gc", command("auto aggressive prune? no-prune quiet q force")],
  ["hash-object", command("t: path: w literally", { reads: ({ operands }) => operands })],
  ["notes", command("m:- F:< ref: f")],
  ...(
    "difftool mergetool filter-branch hook instaweb daemon shell http-backend p4 svn web--browse credential help gui citool " +
    "for-each-repo receive-pack upload-pack maintenance send-email fast-import fast-export checkout-index"
  )
    .split(" ")
    .map((name): [string, GitCommand] => [
      name,
      command("", { caution: starts(name), ...(dumpers.has(name) && { shows: always }) }),
    ]),
];

const remoteVerbs: ReadonlySet<string> = new Set(["update", "show", "prune", "set-head"]);
const submoduleVerbs: ReadonlySet<string> = new Set(["update", "add", "init", "sync"]);

/** Which repositories a git command reaches; undefined for one that stays in its own. */
export function gitTransport(name: string, scanned: ScannedWords): GitTransport | undefined {
  const operands = scanned.operands.map(({ text }) => text);
  const [first, ...rest] = operands;
  switch (name) {
    case "fetch":
      return { verb: "exchange", named: hasOption(scanned, "multiple") ? operands : operands.slice(0, 1) };
    case "pull":
    case "push":
    case "ls-remote":
      return { verb: "exchange", named: operands.slice(0, 1) };
    case "clone":
      return { verb: "clone", named: operands.slice(0, 1) };
    case "remote":
      return first !== undefined && remoteVerbs.has(first)
        ? { verb: "exchange", named: first === "update" ? [] : rest.slice(0, 1) }
        : undefined;
    case "submodule":
      return first !== undefined && submoduleVerbs.has(first) ? { verb: "submodule", named: [] } : undefined;
    case "rebase":
      return hasOption(scanned, "i", "interactive") ? { verb: "edit", named: [] } : undefined;
    default:
      return undefined;
  }
}

const switchedBy = (settings: readonly string[]): readonly string[] =>
  settings.flatMap((setting) => ["-c", setting]);
const settingsIn = (text: string): readonly string[] => switchedBy(text.trim().split(/\s+/));

/** Options for every git that was not approved by a person: nothing runs here that a configuration names. */
export const withoutPrograms: readonly string[] = [
  "--no-pager",
  "--no-optional-locks",
  ...settingsIn(`core.fsmonitor=false core.hooksPath=/dev/null core.pager=cat core.editor=false sequence.editor=false
    core.alternateRefsCommand=false gpg.program=false gpg.ssh.program=false gpg.x509.program=false gpg.ssh.defaultKeyCommand=
    log.showSignature=false interactive.diffFilter= uploadpack.packObjectsHook= gc.auto=0 maintenance.auto=false
    submodule.recurse=false`),
];

/** Options for a git that only reads: no programs that a configuration names, no other machines, no locks. */
export const hardenedGit: readonly string[] = [
  ...withoutPrograms,
  ...settingsIn(`core.askPass= core.sshCommand=false core.gitProxy= credential.helper= protocol.allow=never
    safe.bareRepository=explicit stash.showPatch=false diff.ignoreSubmodules=dirty status.submoduleSummary=false`),
];

/** Options against filters of these names, whichever file they are configured in. */
export function withoutFilters(names: readonly string[]): readonly string[] {
  return names.flatMap((name) =>
    switchedBy(["clean=", "smudge=", "process=", "required=false"].map((end) => `filter.${name}.${end}`)),
  );
}
