import { hasOption, type OptionTable, optionTable, type ScannedWords } from "./options.ts";
import type { Word } from "./shell-word.ts";

/** How one subcommand of git reads its arguments. An option that is missing here is not understood. */
export interface GitCommand {
  readonly options: OptionTable;
  /** Whether these arguments only read. */
  readonly readOnly: (scanned: ScannedWords) => boolean;
  /** Files of the work tree, or paths of the repository, that it reads. */
  readonly reads: (scanned: ScannedWords) => readonly Word[];
  readonly writes: (scanned: ScannedWords) => readonly Word[];
  readonly caution: (scanned: ScannedWords) => string | undefined;
  /** Whether it shows contents that version control holds, under any path. */
  readonly shows: (scanned: ScannedWords) => boolean;
  /** Options that are added when it only reads, against programs that the configuration names. */
  readonly hardening: readonly string[];
}

export function gitCommand(name: string): GitCommand | undefined {
  return commands.get(name);
}

const none = (): readonly Word[] => [];
const never = (): boolean => false;
const always = (): boolean => true;
const calm = (): undefined => undefined;

function command(options: string, rest: Partial<GitCommand> = {}): GitCommand {
  return {
    options: optionTable(options),
    readOnly: never,
    reads: none,
    writes: none,
    caution: calm,
    shows: never,
    hardening: [],
    ...rest,
  };
}

const diffOptions =
  "p u patch s no-patch U: unified: raw patch-with-raw stat? shortstat numstat dirstat? summary name-only name-status " +
  "compact-summary color? no-color color-words? word-diff? word-diff-regex: color-moved? no-color-moved minimal patience " +
  "histogram anchored: diff-algorithm: indent-heuristic no-indent-heuristic full-index binary abbrev? M? find-renames? C? " +
  "find-copies? find-copies-harder D B? break-rewrites? no-renames rename-empty l: diff-filter: S: G: pickaxe-all " +
  "pickaxe-regex R relative? no-relative a text ignore-cr-at-eol ignore-space-at-eol b ignore-space-change w " +
  "ignore-all-space ignore-blank-lines I: ignore-matching-lines: inter-hunk-context: W function-context exit-code quiet q " +
  "no-ext-diff no-textconv ignore-submodules? src-prefix: dst-prefix: no-prefix line-prefix: ita-invisible-in-index z t c cc " +
  "combined-all-paths output:> ext-diff! textconv! O:<! ";
const logOptions =
  "n: max-count: skip: since: after: until: before: author: committer: grep: grep-reflog: all-match invert-grep i " +
  "regexp-ignore-case basic-regexp E extended-regexp F fixed-strings P perl-regexp remove-empty merges no-merges min-parents: " +
  "max-parents: first-parent all branches? tags? remotes? glob: exclude: reflog oneline format: pretty? abbrev-commit " +
  "no-abbrev-commit decorate? no-decorate decorate-refs: decorate-refs-exclude: source graph no-graph show-linear-break? date: " +
  "relative-date parents children left-right cherry-mark cherry-pick cherry boundary topo-order date-order author-date-order " +
  "reverse follow full-diff log-size notes? no-notes show-notes? walk-reflogs g simplify-by-decoration simplify-merges " +
  "full-history dense sparse no-walk? encoding: mailmap use-mailmap expand-tabs? m diff-merges: no-diff-merges count ";
const transport =
  "upload-pack:! receive-pack:! exec:! o: server-option: depth: j: jobs: recurse-submodules? no-recurse-submodules q quiet v " +
  "verbose progress no-progress 4 6 ipv4 ipv6 n dry-run t tags no-tags p prune a all append f force multiple shallow-since: " +
  "shallow-exclude: unshallow set-upstream u k keep atomic ";

const noPrograms = ["--no-ext-diff", "--no-textconv"];

/** A format that shows signatures has them checked by a program. */
const showsSignatures = ({ options }: ScannedWords): string | undefined =>
  options.some(
    ({ name, value }) => /^(?:format|pretty)$/.test(name) && /%G|%-?[+ ]?G/.test(value?.text ?? ""),
  )
    ? "a format of git that checks signatures starts a program"
    : undefined;

/** What is shown may be a file: a path, or `REV:path` one of the past. */
const shown = ({ operands }: ScannedWords): readonly Word[] =>
  operands.flatMap((word) => {
    const colon = word.text.indexOf(":");
    const past = word.text.slice(colon + 1);
    if (colon === -1 || past === "" || /^[(/!^]/.test(past)) return [word];
    const path = { ...word, text: past, path: past };
    return colon === 0 ? [path] : [word, path];
  });
const printsPatch = (scanned: ScannedWords): boolean =>
  hasOption(
    scanned,
    ..."p u patch U unified patch-with-raw S G word-diff color-words W function-context c cc full-diff".split(
      " ",
    ),
  );
const listsNames = (scanned: ScannedWords): boolean =>
  hasOption(
    scanned,
    ..."stat shortstat numstat dirstat summary name-only name-status compact-summary s no-patch raw".split(
      " ",
    ),
  );

/** `ext::command` is an address that starts a program. */
const address = ({ operands }: ScannedWords): string | undefined =>
  operands.some(({ text, literal }) => !literal || /^[\w+-]+::|^-/.test(text))
    ? "the address may start a program"
    : undefined;
const first =
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
  command(options, { readOnly: always, caution: showsSignatures, ...rest });

const configNames =
  /^(?:user|core|remote|branch|init|push|pull|merge|rebase|commit|tag|diff|status|log)\.[\w./-]+$/i;

/** `git config` reads in one form only: one action, and the name of one plain setting. */
function readsConfig({ options, operands }: ScannedWords): boolean {
  const actions = options.filter(({ name }) => name.startsWith("get"));
  const isVerb = actions.length === 0 && operands[0]?.text === "get";
  if (actions.length !== 1 && !isVerb) return false;
  const rest = isVerb ? operands.slice(1) : operands;
  const [name] = rest;
  return rest.length === 1 && name?.literal === true && configNames.test(name.text);
}

const commands: ReadonlyMap<string, GitCommand> = new Map<string, GitCommand>([
  [
    "status",
    reader(
      "s short b branch show-stash porcelain? long u? untracked-files? ignore-submodules? ignored? z column? no-column " +
        "ahead-behind no-ahead-behind renames no-renames find-renames?",
    ),
  ],
  [
    "diff",
    reader(`${diffOptions}cached staged merge-base no-index 1 2 3 0 base ours theirs`, {
      reads: shown,
      shows: (scanned) => !listsNames(scanned) || printsPatch(scanned),
      hardening: noPrograms,
    }),
  ],
  ["log", reader(`${diffOptions}${logOptions}`, { reads: shown, shows: printsPatch, hardening: noPrograms })],
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
    reader(`${logOptions}`, {
      readOnly: (scanned) => scanned.operands.length === 0 || first("show")(scanned),
    }),
  ],
  ["rev-list", reader(`${logOptions}objects disk-usage? quiet max-age: min-age:`)],
  [
    "shortlog",
    reader(
      "n numbered s summary e email w? c committer group: format: since: after: until: before: author: no-merges merges all",
    ),
  ],
  ["cherry", reader("v abbrev?")],
  [
    "diff-tree",
    reader(`${diffOptions}r root m v no-commit-id always pretty? format:`, {
      shows: printsPatch,
      reads: shown,
      hardening: noPrograms,
    }),
  ],
  [
    "blame",
    reader(
      "L: l t s e p w c b n f M? C? porcelain line-porcelain incremental root show-stats date: since: color-lines color-by-age " +
        "show-email show-name show-number abbrev: ignore-rev: contents:<! ignore-revs-file:<! S:<! reverse",
      { reads: shown, hardening: ["--no-textconv"] },
    ),
  ],
  ["annotate", reader("L: l t e p date:", { reads: shown, hardening: ["--no-textconv"] })],
  [
    "grep",
    reader(
      "i ignore-case w word-regexp v invert-match h H full-name E extended-regexp G basic-regexp F fixed-strings P perl-regexp n " +
        "line-number column l files-with-matches name-only L files-without-match z null o only-matching c count color? no-color " +
        "break heading p show-function W function-context A: B: C: m: max-count: e: and or not all-match q quiet cached untracked " +
        "a text I max-depth: r recursive no-recursive threads: no-textconv exclude-standard O?! open-files-in-pager?! f:<! textconv! no-index! ext-grep!",
      {
        reads: (scanned) =>
          shown({ ...scanned, operands: scanned.operands.slice(hasOption(scanned, "e") ? 0 : 1) }),
        shows: always,
      },
    ),
  ],
  [
    "cat-file",
    reader("t s e p textconv! filters! batch?! batch-check?!", {
      reads: shown,
      shows: (scanned) => !hasOption(scanned, "t", "s", "e"),
    }),
  ],
  [
    "rev-parse",
    reader(
      "abbrev-ref? abbrev? short? symbolic symbolic-full-name verify q quiet show-toplevel show-prefix show-cdup git-dir " +
        "absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository all " +
        "branches? tags? remotes? not show-superproject-working-tree default: git-path:",
    ),
  ],
  [
    "ls-files",
    reader(
      "c cached d deleted o others i ignored s stage m modified k killed u unmerged t v f z x: exclude: exclude-standard " +
        "error-unmatch full-name abbrev? directory no-empty-directory eol deduplicate",
    ),
  ],
  ["ls-tree", reader("d r t l z name-only name-status object-only full-name full-tree abbrev? long")],
  ["merge-base", reader("a all octopus independent is-ancestor fork-point")],
  ["name-rev", reader("tags refs: exclude: all name-only no-undefined always")],
  ["show-ref", reader("head heads tags d dereference s hash? verify abbrev? q quiet")],
  [
    "for-each-ref",
    reader("count: sort: format: points-at: merged:~ no-merged:~ contains:~ no-contains:~ ignore-case"),
  ],
  ["count-objects", reader("v verbose H human-readable")],
  ["check-ignore", reader("q quiet v verbose z n non-matching no-index")],
  ["check-attr", reader("a all z")],
  [
    "describe",
    reader(
      "all tags contains abbrev: candidates: exact-match long match: exclude: always first-parent dirty? broken?",
    ),
  ],
  ["version", reader("build-options")],
  [
    "branch",
    command(
      "a r v l list all remotes verbose show-current contains:~ no-contains:~ merged:~ no-merged:~ sort: points-at: format: color? " +
        "no-color abbrev: no-abbrev column? no-column i ignore-case q quiet d D m M c C u: f set-upstream-to: delete move copy force " +
        "edit-description! track? no-track t create-reflog unset-upstream recurse-submodules!",
      { readOnly: lists },
    ),
  ],
  [
    "tag",
    command(
      "l list n? sort: contains:~ no-contains:~ merged:~ no-merged:~ points-at: format: color? column? i ignore-case F:< file:< m: " +
        "message: u: local-user: d v! verify! delete f force a annotate s sign e! edit! cleanup: create-reflog",
      {
        readOnly: (scanned) =>
          lists(scanned) && !hasOption(scanned, "m", "message", "a", "annotate", "sign", "local-user"),
      },
    ),
  ],
  [
    "remote",
    command("v verbose all push", {
      readOnly: ({ operands }) =>
        operands.length === 0 || (operands.length === 2 && operands[0]?.text === "get-url"),
      caution: address,
    }),
  ],
  [
    "stash",
    command(`${diffOptions}${logOptions}k keep-index no-keep-index include-untracked all message: index`, {
      readOnly: first("list", "show"),
      shows: printsPatch,
    }),
  ],
  [
    "worktree",
    command("b: B: d f force detach porcelain v z checkout no-checkout lock reason: track no-track", {
      readOnly: (scanned) => scanned.operands.length === 1 && first("list")(scanned),
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
  ["fetch", command(transport, { caution: address })],
  [
    "pull",
    command(
      `${transport}s: strategy: X: strategy-option: rebase? r? no-rebase ff no-ff ff-only autostash no-autostash commit no-commit no-edit edit e stat squash allow-unrelated-histories x:!`,
      { caution: address },
    ),
  ],
  [
    "push",
    command(
      `${transport}repo:! force-with-lease? force-if-includes d delete mirror follow-tags no-verify verify thin porcelain signed?`,
      { caution: address },
    ),
  ],
  ["ls-remote", command(`${transport}heads refs exit-code get-url symref sort: h`, { caution: address })],
  [
    "clone",
    command(
      `${transport}u:! c:! config:! template:! b: branch: single-branch no-single-branch reference: separate-git-dir:> recursive! l local no-hardlinks s shared! bare mirror origin: no-checkout filter: sparse`,
      { caution: address, writes: ({ operands }) => operands.slice(1, 2) },
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
        first("start", "good", "bad", "new", "old", "skip", "reset", "log", "next", "terms")(scanned)
          ? undefined
          : "git bisect starts a program",
    }),
  ],
  [
    "submodule",
    command("q quiet cached files recursive", {
      caution: (scanned) =>
        first("status", "summary")(scanned)
          ? undefined
          : "git submodule starts programs or fetches other repositories",
    }),
  ],
  [
    "rebase",
    command(
      "x:! exec:! i! interactive! onto: s: strategy: X: C: root autostash no-autostash continue abort skip quit edit-todo! q quiet v verbose stat n no-stat no-verify verify f force-rebase no-ff keep-base autosquash no-autosquash update-refs reapply-cherry-picks rebase-merges? committer-date-is-author-date signoff",
    ),
  ],
  [
    "commit",
    command(
      "F:< file:< t:< template:< m: message: C: reuse-message: author: date: a all amend no-edit p patch S? gpg-sign? no-gpg-sign q " +
        "quiet v verbose fixup: squash: s signoff n no-verify verify allow-empty allow-empty-message pathspec-from-file:< cleanup: " +
        "trailer: dry-run short branch porcelain long z status no-status o only i include reset-author u? untracked-files? no-post-rewrite e edit",
    ),
  ],
  [
    "merge",
    command(
      "F:< file:< m: message: s: strategy: X: strategy-option: S? ff no-ff ff-only commit no-commit squash no-squash stat n no-stat log? q quiet v verbose abort continue quit no-edit e edit allow-unrelated-histories no-verify autostash signoff into-name:",
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
    command("n no-commit m: mainline: s signoff no-edit e edit continue abort skip quit S? X: strategy:"),
  ],
  [
    "cherry-pick",
    command(
      "n no-commit m: mainline: s signoff x e edit ff continue abort skip quit S? X: strategy: allow-empty keep-redundant-commits",
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
  ["notes", command("m: F:< ref: f")],
  ["ls-remote", command(transport, { caution: address })],
  ...(
    "difftool mergetool filter-branch hook instaweb daemon shell http-backend p4 svn web--browse credential help gui citool " +
    "for-each-repo receive-pack upload-pack maintenance send-email fast-import fast-export checkout-index"
  )
    .split(" ")
    .map((name): [string, GitCommand] => [name, command("", { caution: starts(name) })]),
]);
