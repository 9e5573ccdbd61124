import { type OptionTable, optionTable, type ScannedWords } from "./shell-options.ts";
import type { Word } from "./shell-word.ts";

export interface GitCommand {
  readonly options: OptionTable;
  /** It has options that start programs or write files. */
  readonly risky: boolean;
  readonly readOnly: (scanned: ScannedWords) => boolean;
  readonly reads: (scanned: ScannedWords) => readonly Word[];
  readonly writes: (scanned: ScannedWords) => readonly Word[];
  readonly caution: (scanned: ScannedWords) => string | undefined;
}

export function gitCommand(name: string): GitCommand | undefined {
  return commands.get(name);
}

const none = (): readonly Word[] => [];
const never = (): boolean => false;
const always = (): boolean => true;
const calm = (): undefined => undefined;

function command(options: string, rest: Partial<GitCommand> = {}): GitCommand {
  const table = optionTable(options);
  const risky = [...table.values()].some((signs) => /[>!]/.test(signs));
  return { options: table, risky, readOnly: never, reads: none, writes: none, caution: calm, ...rest };
}

const diffOptions =
  "output:> ext-diff! no-index O:< S: G: U: unified: l: L: M? C? B? n: skip: since: until: author: grep: format: " +
  "pretty? stat? oneline output-indicator-new: output-indicator-old: output-indicator-context: textconv ";
const transport =
  "upload-pack:! receive-pack:! exec:! o: server-option: depth: j: jobs: recurse-submodules? ";

/** What is shown may be the contents of a file: `git diff` takes any two, `REV:path` one of the past. */
const shown = ({ operands }: ScannedWords): readonly Word[] =>
  operands.flatMap((word) => {
    const colon = word.text.indexOf(":");
    const past = word.text.slice(colon + 1);
    return colon > 0 && past !== "" ? [word, { ...word, text: past, path: past }] : [word];
  });
/** `ext::command` is an address that starts a program. */
const address = ({ operands }: ScannedWords): string | undefined =>
  operands.some(({ text, literal }) => !literal || /^[\w+-]+::|^-/.test(text))
    ? "the address may start a program"
    : undefined;
const first =
  (...names: string[]) =>
  ({ operands }: ScannedWords): boolean =>
    names.includes(operands[0]?.text ?? "");
const lists = ({ options, operands }: ScannedWords): boolean =>
  !options.some(({ name }) => changing.has(name)) &&
  (operands.length === 0 || options.some(({ name }) => name === "list" || name === "l"));
const changing = new Set(
  "d D m M c C u f delete move copy force edit-description set-upstream-to unset-upstream create-reflog track".split(
    " ",
  ),
);
const risky = (reason: string) => (): string => reason;

const plainReaders =
  "status rev-parse ls-files ls-tree merge-base name-rev show-ref for-each-ref count-objects check-ignore " +
  "check-attr describe version var";

const commands: ReadonlyMap<string, GitCommand> = new Map<string, GitCommand>([
  ...plainReaders.split(" ").map((name): [string, GitCommand] => [name, command("", { readOnly: always })]),
  ...[
    "diff",
    "log",
    "show",
    "whatchanged",
    "diff-tree",
    "diff-index",
    "diff-files",
    "range-diff",
    "rev-list",
    "cherry",
    "shortlog",
  ].map((name): [string, GitCommand] => [name, command(diffOptions, { readOnly: always, reads: shown })]),
  [
    "blame",
    command(`${diffOptions}contents:< ignore-revs-file:< ignore-rev: date:`, {
      readOnly: always,
      reads: shown,
    }),
  ],
  ["annotate", command(`${diffOptions}contents:<`, { readOnly: always, reads: shown })],
  [
    "grep",
    command("O?! open-files-in-pager?! f:< e: A: B: C: m: max-depth: threads: no-index ext-grep!", {
      readOnly: always,
      reads: shown,
    }),
  ],
  ["cat-file", command("textconv! filters! batch? path:", { readOnly: always, reads: shown })],
  [
    "branch",
    command(
      "list l d D m M c C u: f set-upstream-to: contains: merged: no-merged: sort: format: delete move copy force edit-description! show-current a r v all remotes verbose",
      { readOnly: lists },
    ),
  ],
  [
    "tag",
    command("F:< file:< m: u: d v! verify! l list n? sort: contains: format: delete f force a s", {
      readOnly: (scanned) =>
        lists(scanned) && !scanned.options.some(({ name }) => name === "d" || name === "delete"),
    }),
  ],
  [
    "remote",
    command("v verbose", {
      readOnly: ({ operands }) => operands.length === 0 || operands[0]?.text === "get-url",
      caution: address,
    }),
  ],
  ["stash", command(diffOptions, { readOnly: first("list", "show") })],
  [
    "reflog",
    command(diffOptions, { readOnly: (scanned) => scanned.operands.length === 0 || first("show")(scanned) }),
  ],
  [
    "worktree",
    command("b: B: d f force detach", {
      readOnly: first("list"),
      writes: ({ operands }) => (operands[0]?.text === "add" ? operands.slice(1, 2) : []),
    }),
  ],
  [
    "config",
    command(
      "get get-all get-regexp get-urlmatch: l list show-origin show-scope global system local worktree f:! file:! blob: e! edit! z name-only type: default:",
      {
        readOnly: ({ options, operands }) =>
          options.some(({ name }) => ["get", "get-all", "get-regexp", "l", "list"].includes(name)) ||
          ["get", "list"].includes(operands[0]?.text ?? ""),
        caution: ({ options, operands }) =>
          options.some(({ name }) => name.startsWith("get") || name === "l" || name === "list") ||
          ["get", "list"].includes(operands[0]?.text ?? "")
            ? undefined
            : "a changed git configuration can start programs",
      },
    ),
  ],
  ["fetch", command(transport, { caution: address })],
  ["pull", command(`${transport}s: X: rebase? x:!`, { caution: address })],
  [
    "push",
    command(`${transport}f force repo:! force-with-lease? u set-upstream d delete`, { caution: address }),
  ],
  ["ls-remote", command(transport, { caution: address })],
  [
    "clone",
    command(`${transport}u:! c:! config:! template:! b: branch: reference: separate-git-dir:> recursive!`, {
      caution: address,
      writes: ({ operands }) => operands.slice(1, 2),
    }),
  ],
  [
    "init",
    command("template:! separate-git-dir:> b: initial-branch:", {
      writes: ({ operands }) => operands.slice(0, 1),
    }),
  ],
  ["archive", command("o:> output:> exec:! remote:! format: prefix: add-file:< add-virtual-file:")],
  ["format-patch", command(`${diffOptions}o:> output-directory:> signature-file:< in-reply-to:`)],
  [
    "bisect",
    command("", {
      risky: true,
      caution: (scanned) =>
        first("run", "visualize", "view", "replay")(scanned) ? "git bisect starts a program" : undefined,
    }),
  ],
  [
    "submodule",
    command("", {
      risky: true,
      caution: (scanned) =>
        first("status", "summary")(scanned)
          ? undefined
          : "git submodule starts programs or fetches other repositories",
    }),
  ],
  ["rebase", command("x:! exec:! i! interactive! onto: s: X: strategy: C: root autostash edit-todo!")],
  [
    "commit",
    command(
      "F:< file:< t:< template:< m: message: C: c: author: date: a all amend no-edit p patch S? q v fixup: squash: s n no-verify pathspec-from-file:< cleanup: trailer:",
    ),
  ],
  ["merge", command("F:< file:< m: s: X: S?")],
  [
    "apply",
    command("directory:> unsafe-paths! build-fake-ancestor:> exclude: include: p: C:", {
      reads: ({ operands }) => operands,
    }),
  ],
  ["am", command("directory:> S? p: C: exclude: include: patch-format:")],
  [
    "bundle",
    command("", { writes: ({ operands }) => (operands[0]?.text === "create" ? operands.slice(1, 2) : []) }),
  ],
  ["add", command("pathspec-from-file:< chmod:")],
  ["checkout", command("b: B: pathspec-from-file:<")],
  ["hash-object", command("t: path: stdin-paths w", { reads: ({ operands }) => operands })],
  ["fast-export", command(`${diffOptions}export-marks:> import-marks:<`)],
  ["fast-import", command("export-marks:> export-pack-edges:>")],
  ["checkout-index", command("prefix:>")],
  ["send-email", command("", { caution: risky("git send-email starts programs") })],
  ...[
    "difftool",
    "mergetool",
    "filter-branch",
    "hook",
    "instaweb",
    "daemon",
    "shell",
    "http-backend",
    "p4",
    "svn",
    "web--browse",
    "credential",
    "help",
    "gui",
    "citool",
    "for-each-repo",
    "receive-pack",
    "upload-pack",
    "maintenance",
  ].map((name): [string, GitCommand] => [
    name,
    command("", { caution: risky(`git ${name} starts programs`) }),
  ]),
]);
