import type { ProgramSpec } from "./judgement.ts";

const question = "help version";

const grep: ProgramSpec = {
  options:
    "E F G P e:- i v w x y z c L l m: o q s b H h n T Z a I U r R A: B: C: f:< d: D: extended-regexp fixed-strings " +
    "basic-regexp perl-regexp regexp:- file:< ignore-case no-ignore-case invert-match word-regexp line-regexp count " +
    "color? colour? files-without-match files-with-matches max-count: only-matching quiet silent no-messages " +
    "byte-offset with-filename no-filename label: line-number initial-tab null after-context: before-context: " +
    "context: group-separator: no-group-separator text binary-files: directories: devices: exclude: exclude-from:< " +
    `exclude-dir: include: recursive dereference-recursive line-buffered null-data binary V ${question}`,
  numeric: true,
  operands: "read",
  skip: 1,
  instead: "e regexp f file",
  implicit: "r R recursive dereference-recursive",
  below: "r R recursive dereference-recursive d directories",
  leavesOut: ({ name, isFolder }) => [
    ...(isFolder === true ? [] : [`--exclude=${name}`]),
    `--exclude-dir=${name}`,
  ],
  readOnly: true,
  caution: ({ options }) =>
    options.some(({ name }) => name === "R" || name === "dereference-recursive")
      ? "grep -R follows links out of the folder"
      : undefined,
};

const ripgrep: ProgramSpec = {
  options:
    "e:- regexp:- f:< file:< g: glob: iglob: glob-case-insensitive t: T: type: type-not: type-list A: B: C: m: M: j: d: r: " +
    "after-context: before-context: context: max-count: max-columns: max-columns-preview threads: max-depth: " +
    "replace: i S s v w x n N l c o q H I h F P U b p 0 a L! follow! u hidden . no-hidden no-ignore no-ignore-vcs " +
    "no-ignore-global no-ignore-parent unrestricted ignore-case smart-case case-sensitive invert-match word-regexp " +
    "line-regexp line-number no-line-number files-with-matches files-without-match count count-matches " +
    "only-matching quiet with-filename no-filename fixed-strings pcre2 multiline multiline-dotall byte-offset " +
    "pretty null text files sort: sortr: color: colors: heading no-heading column no-column stats json trim vimgrep " +
    "no-messages no-config passthru crlf no-crlf one-file-system line-buffered block-buffered context-separator: " +
    "no-context-separator field-context-separator: field-match-separator: E: encoding: engine: auto-hybrid-regex binary " +
    "include-zero debug trace dfa-size-limit: regex-size-limit: max-filesize: ignore-file:< ignore-file-case-insensitive mmap " +
    "no-mmap no-ignore-dot no-ignore-exclude no-ignore-files no-ignore-messages no-require-git null-data path-separator: " +
    `type-add: type-clear: no-unicode no-pcre2-unicode pcre2-version stop-on-nonmatch ${question} V`,
  operands: "read",
  skip: 1,
  instead: "e regexp f file files type-list",
  below: true,
  hidden: "hidden . u unrestricted",
  implicit: true,
  // Of these options the last counts, and they count more than `-g` and any file with patterns.
  leavesOut: ({ name }) => [`--iglob=!${name}`],
  readOnly: true,
};

/** Programs that search or compare whole folders. */
export const searchingPrograms: readonly (readonly [string, ProgramSpec])[] = [
  ["grep", grep],
  ["egrep", grep],
  ["fgrep", grep],
  ["rg", ripgrep],
  [
    "fd",
    {
      options:
        "x:! X:! exec:! exec-batch:! H I u s i g F a L! follow! p 0 d: E: t: e: S: j: c: o: hidden no-ignore no-ignore-vcs unrestricted " +
        "case-sensitive ignore-case glob regex fixed-strings absolute-path full-path print0 max-depth: min-depth: exact-depth: " +
        "exclude: type: extension: size: changed-within: changed-before: owner: threads: color: max-results: quiet q 1 prune no-hidden " +
        "no-ignore-parent ignore ignore-vcs and:- relative-path changed-after: newer: older: change-newer-than: change-older-than: " +
        "show-errors path-separator: strip-cwd-prefix one-file-system search-path:< ignore-file:< base-directory:! h help V version",
      operands: "read",
      skip: 1,
      implicit: true,
      readOnly: true,
    },
  ],
  [
    "diff",
    {
      options:
        "q s c C: u U: e n y W: p F: t T a b B w E Z i I: d H D: r N P x: S: L: v brief report-identical-files context? unified? ed rcs " +
        "side-by-side width: left-column suppress-common-lines show-c-function show-function-line: label: expand-tabs " +
        "initial-tab tabsize: suppress-blank-empty recursive no-dereference new-file unidirectional-new-file ignore-file-name-case " +
        "no-ignore-file-name-case exclude: starting-file: ignore-case ignore-tab-expansion ignore-trailing-space " +
        "ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines: text strip-trailing-cr ifdef: " +
        `line-format: minimal horizon-lines: speed-large-files color? palette: normal X:< exclude-from:< from-file:< to-file:< ${question}`,
      numeric: true,
      // Folders are compared file by file, and links in them would lead anywhere.
      below: true,
      follows: true,
      added: "--no-dereference",
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "tree",
    {
      options:
        "a d f x L: P: I: p u g s h D F q N Q i A S n C J X r t c v U l! si du prune noreport gitignore ignore-case matchdirs " +
        `dirsfirst filesfirst metafirst nolinks sort: inodes device timefmt: charset: filelimit: gitfile:< ${question}`,
      letters: "separate",
      operands: "read",
      implicit: true,
      readOnly: true,
    },
  ],
];
