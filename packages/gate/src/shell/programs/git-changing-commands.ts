import {
  address,
  always,
  command,
  diffOptions,
  first,
  type GitCommand,
  logOptions,
  receiving,
  starts,
  transport,
} from "./git-command.ts";
import { strategyRisk } from "./tree-steps.ts";

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
    command(
      "q quiet cached files recursive init remote N no-fetch checkout merge rebase f force depth: j: jobs: single-branch " +
        "no-single-branch recommend-shallow no-recommend-shallow progress filter:",
      {
        caution: (scanned) =>
          first("status", "summary", "update", "init", "sync")(scanned)
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
