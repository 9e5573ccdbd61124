import { optionTable, quoteWord, type ScannedWords, scanOptions, valuesOf, type Word } from "../word.ts";
import { gitReadingCommands } from "./git-reading-commands.ts";
import { hardenedGit } from "./hardened-git.ts";
import {
  address,
  always,
  command,
  diffOptions,
  environmentReason,
  first,
  type GitCommand,
  type Judgement,
  judgement,
  logOptions,
  optionPaths,
  optionRisk,
  type Place,
  receiving,
  revisionPath,
  shown,
  starts,
  transport,
  type UsedPath,
  used,
} from "./judgement.ts";
import { namedPaths, strategyRisk, type TreeStep, treeSteps } from "./tree-steps.ts";

/** Of the commands that start programs, those that print what version control holds. */
const dumpers = new Set(["difftool", "fast-export", "checkout-index"]);

/** Subcommands that change something, with the options that a wildcard in a rule covers. */
export const gitChangingCommands: readonly (readonly [string, GitCommand])[] = [
  [
    "fetch",
    command(`${transport}${receiving}j: jobs: n u multiple atomic P prune-tags`, { caution: address }),
  ],
  [
    "pull",
    command(
      `${transport}${receiving}j? jobs? n s: strategy: X: strategy-option: rebase? r? no-rebase ff no-ff ff-only autostash no-autostash commit no-commit no-edit edit stat squash allow-unrelated-histories`,
      { caution: (scanned) => address(scanned) ?? strategyRisk(scanned) },
    ),
  ],
  [
    "push",
    command(
      `${transport}receive-pack:! exec:! recurse-submodules: no-recurse-submodules n dry-run tags prune all f force set-upstream u atomic repo:! force-with-lease? force-if-includes d delete mirror follow-tags no-verify verify thin porcelain signed?`,
      { caution: address },
    ),
  ],
  [
    "ls-remote",
    command(
      "upload-pack:! exec:! o: server-option: q quiet t tags heads refs exit-code get-url symref sort: h",
      { caution: address },
    ),
  ],
  [
    "clone",
    command(
      `${transport}upload-pack:! server-option: depth: j: jobs: recurse-submodules?! no-tags shallow-since: shallow-exclude: n u:! c:! config:! template:! b: branch: single-branch no-single-branch reference: separate-git-dir:> recursive! l local no-hardlinks s shared! bare mirror origin: no-checkout filter: sparse`,
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

export const gitGlobals = optionTable(
  "C: c:! exec-path?! git-dir:! work-tree:! namespace:! p! paginate! config-env:! super-prefix:! attr-source:! bare! " +
    "P no-pager no-replace-objects no-optional-locks no-lazy-fetch no-advice literal-pathspecs glob-pathspecs " +
    "noglob-pathspecs icase-pathspecs version v help!",
);

/** Settings that change only how git prints, whatever their value. */
const printingSetting =
  /^(?:color\.[\w.-]+=[\w\s,#-]*|core\.(?:quotepath|abbrev|pager)=(?:cat|true|false|auto|\d+)?|pager\.\w+=(?:false|cat)|(?:log|blame)\.date=[\w-]+|log\.(?:abbrevcommit|decorate)=\w+|advice\.\w+=\w+|diff\.(?:renames|algorithm|noprefix|mnemonicprefix|context|colormoved)=\w+|status\.(?:short|branch|relativepaths|showuntrackedfiles)=\w+|column\.ui=[\w,]+)$/i;

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
export function judgeGit(words: readonly Word[], { isKnown, repository }: Place): Judgement {
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
  const hasVerb = rest[0] !== undefined && rest[0] === scanned.operands[0];
  const isMisplaced = command.verb === "must" && !hasVerb;
  const readOnly = judged.readOnly && !isMisplaced && environmentReason(words) === undefined;
  return {
    ...judged,
    readOnly,
    anywhere: false,
    ...(named !== undefined && { exactOnly: named, wildcardHead: `git ${subcommand.text}` }),
    ...(tree.length > 0 && { tree: pathspecOptions(before).length === 0 ? tree : withOptions(tree, before) }),
    ...(command.shows(scanned) && !namesPaths(scanned) && { showsTracked: true as const }),
    ...(judged.exactOnly !== undefined && { namesFiles: "any" as const }),
    ...(readOnly && { rendered: harden(before, subcommand, rest, command) }),
    ...(readOnly &&
      isLimitable(subcommand.text, scanned) && {
        limited: harden(before, subcommand, rest.map(asCommit), command),
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
  return shown({ ...scanned, operands }, repository).filter((word) => !operands.includes(word));
}

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
  };
}

function harden(
  before: ScannedWords,
  subcommand: Word,
  rest: readonly Word[],
  command: GitCommand,
): readonly string[] {
  const kept = pathspecOptions(before);
  const verbs = command.verb !== undefined && rest[0]?.text.startsWith("-") === false ? 1 : 0;
  return [
    "git",
    ...valuesOf(before, "C").flatMap(({ rendered }) => ["-C", rendered]),
    ...valuesOf(before, "printing").flatMap(({ rendered }) => ["-c", rendered]),
    ...hardenedGit.map(quoteWord),
    ...kept,
    subcommand.rendered,
    ...rest.slice(0, verbs).map(({ rendered }) => rendered),
    ...command.hardening,
    ...rest.slice(verbs).map(({ rendered }) => rendered),
  ];
}
