import type { Word } from "../model.ts";
import { hasOption, optionTable, type ScannedWords, sliceWord, valuesOf } from "../word.ts";
import {
  address,
  always,
  command,
  diffOptions,
  first,
  type GitCommand,
  lists,
  listsNames,
  logOptions,
  noPrograms,
  noSubmodules,
  printsPatch,
  reader,
  reflogOptions,
  shown,
  walkOptions,
} from "./git-command.ts";

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

/** The file in `-L from,to:file`. */
function tracedFile(word: Word): Word {
  return sliceWord(word, word.text.lastIndexOf(":") + 1);
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
      reads: shown,
      shows: (scanned) => !listsNames(scanned) || printsPatch(scanned),
      hardening: [...noPrograms, noSubmodules],
    }),
  ],
  [
    "log",
    reader(`${diffOptions}${logOptions}L: clear-decorations`, {
      reads: (scanned, repository) => [
        ...shown(scanned, repository),
        ...valuesOf(scanned, "L").map(tracedFile),
      ],
      shows: printsPatch,
      hardening: noPrograms,
    }),
  ],
  [
    "show",
    reader(`${diffOptions}${logOptions}`, {
      reads: shown,
      shows: (scanned) => !listsNames(scanned) || printsPatch(scanned),
      hardening: noPrograms,
    }),
  ],
  [
    "whatchanged",
    reader(`${diffOptions}${logOptions}`, { reads: shown, shows: printsPatch, hardening: noPrograms }),
  ],
  [
    "reflog",
    reader(reflogOptions, {
      shows: ({ unclear }) => unclear !== undefined,
      readOnly: (scanned) => scanned.operands.length === 0 || first("show")(scanned),
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
      reads: shown,
      hardening: noPrograms,
    }),
  ],
  ...["diff-index", "diff-files"].map((name): [string, GitCommand] => [
    name,
    reader(`${diffOptions}${name === "diff-index" ? "cached m merge-base" : "q 0 1 2 3 base ours theirs"}`, {
      reads: shown,
      shows: printsPatch,
      hardening: [...noPrograms, noSubmodules],
    }),
  ]),
  [
    "blame",
    reader(
      "L: l t s e p w c b n f M? C? porcelain line-porcelain incremental root show-stats date: since: color-lines color-by-age " +
        "show-email show-name show-number abbrev? progress no-progress score-debug minimal ignore-rev: contents:<! ignore-revs-file:<! S:<! reverse",
      { reads: shown, hardening: ["--no-textconv"] },
    ),
  ],
  ["annotate", reader("L: l t e p date:", { reads: shown, hardening: ["--no-textconv"] })],
  [
    "grep",
    reader(
      "i ignore-case w word-regexp v invert-match h H full-name E extended-regexp G basic-regexp F fixed-strings P perl-regexp n " +
        "line-number column l files-with-matches name-only L files-without-match z null o only-matching c count color? no-color " +
        "break heading p show-function W function-context A: B: C: after-context: before-context: context: m: max-count: e:- and or not all-match q quiet cached untracked " +
        "a text I max-depth: r recursive no-recursive threads: no-textconv exclude-standard O?! open-files-in-pager?! f:<! textconv! no-index! ext-grep!",
      {
        reads: (scanned, repository) =>
          shown(
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
      reads: shown,
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
      caution: address,
      named: ({ operands: [verb] }) =>
        verb === undefined || /^(?:get-url|show)$/.test(verb.text)
          ? undefined
          : "git remote changes where commits come from",
    }),
  ],
  [
    "stash",
    command(`${diffOptions}${logOptions}k keep-index no-keep-index include-untracked message: index`, {
      readOnly: (scanned) => first("list", "show")(scanned) && hasOnly(scanned, diffOptions + logOptions),
      shows: printsPatch,
      hardening: noPrograms,
      verb: "must",
    }),
  ],
  [
    "worktree",
    command(`${listing}b: B: d f force detach checkout no-checkout lock reason: track no-track`, {
      readOnly: (scanned) =>
        scanned.operands.length === 1 && first("list")(scanned) && hasOnly(scanned, listing),
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
