import type { CommandSpec } from "./shell-command-spec.ts";

const grep: CommandSpec = {
  options:
    "e: regexp: f:< file:< A: B: C: m: d: D: after-context: before-context: context: max-count: include: exclude: " +
    "exclude-from:< exclude-dir: label: r R recursive dereference-recursive binary-files: directories: devices:",
  operands: "read",
  skip: 1,
  instead: "e regexp f file",
  implicit: "r R recursive dereference-recursive",
  below: "r R recursive dereference-recursive",
  readOnly: true,
};
const ripgrep: CommandSpec = {
  options:
    "pre:! hostname-bin:! z! search-zip! pre-glob: e: regexp: f:< file:< g: glob: iglob: t: T: type: type-not: A: B: " +
    "C: m: M: j: d: r: E: max-depth: max-count: ignore-file:< sort: color: colors: files pretty p",
  operands: "read",
  skip: 1,
  instead: "e regexp f file files",
  below: true,
  implicit: true,
  readOnly: true,
};
const sums: CommandSpec = { options: "c check tag", operands: "read", readOnly: true };
const silent: CommandSpec = { operands: "none", readOnly: true };

/** Commands that only read, with the options by which they do more. */
export const readingCommands: readonly (readonly [string, CommandSpec])[] = [
  ["ls", { options: "I: ignore: w: T: hide:", operands: "read", implicit: true, readOnly: true }],
  ["cat", { operands: "read", readOnly: true }],
  ["tac", { options: "s: separator:", operands: "read", readOnly: true }],
  ["rev", { operands: "read", readOnly: true }],
  ["nl", { options: "b: d: f: h: i: l: n: s: v: w:", operands: "read", readOnly: true }],
  ["head", { options: "n: c: lines: bytes:", operands: "read", readOnly: true }],
  ["tail", { options: "n: c: s: lines: bytes: pid: sleep-interval:", operands: "read", readOnly: true }],
  ["wc", { options: "files0-from:<", operands: "read", readOnly: true }],
  ["cut", { options: "d: f: c: b: delimiter: fields: output-delimiter:", operands: "read", readOnly: true }],
  ["tr", silent],
  ["paste", { options: "d: delimiters:", operands: "read", readOnly: true }],
  ["join", { options: "t: 1: 2: j: a: v: o: e:", operands: "read", readOnly: true }],
  ["comm", { options: "output-delimiter:", operands: "read", readOnly: true }],
  ["column", { options: "s: o: t c: N: R:", operands: "read", readOnly: true }],
  ["fold", { options: "w:", operands: "read", readOnly: true }],
  ["grep", grep],
  ["egrep", grep],
  ["fgrep", grep],
  ["zgrep", { ...grep, readOnly: false }],
  ["rg", ripgrep],
  ["ag", { ...ripgrep, options: "pager:! p:< path-to-ignore:< G: A: B: C: m:", readOnly: false }],
  ["ack", { ...ripgrep, options: "pager:! ackrc:! files-from:< x! A: B: C: m: g: output:", readOnly: false }],
  [
    "fd",
    {
      options: "x! X! exec! exec-batch! e: t: d: E: S: j: c:",
      operands: "read",
      skip: 1,
      implicit: true,
    },
  ],
  ["stat", { options: "c: f format: printf:", operands: "read", readOnly: true }],
  [
    "du",
    {
      options: "d: B: t: X:< exclude-from:< files0-from:< max-depth: exclude: threshold:",
      operands: "read",
      implicit: true,
      readOnly: true,
    },
  ],
  ["df", { options: "B: t: x: output?", operands: "none", readOnly: true }],
  ["which", silent],
  [
    "file",
    {
      options: "f:< files-from:< m:< magic-file:< C! compile! z! Z! e: F: P:",
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "tree",
    { options: "o:> R! L: I: P: filelimit: charset:", operands: "read", implicit: true, readOnly: true },
  ],
  ["basename", silent],
  ["dirname", silent],
  ["realpath", silent],
  ["readlink", silent],
  ["seq", silent],
  ["sleep", silent],
  ["uname", silent],
  ["whoami", silent],
  ["id", silent],
  ["groups", silent],
  ["nproc", silent],
  ["uptime", silent],
  ["tty", silent],
  ["md5sum", sums],
  ["sha1sum", sums],
  ["sha256sum", sums],
  ["sha512sum", sums],
  ["cksum", sums],
  ["b2sum", sums],
  ["base64", { options: "w: o:> output:> i: wrap:", operands: "read", readOnly: true }],
  ["strings", { options: "n: t: e:", operands: "read", readOnly: true }],
  ["od", { options: "A: j: N: t: w?", operands: "read", readOnly: true }],
  ["hexdump", { options: "f:< e: n: s:", operands: "read", readOnly: true }],
  ["cmp", { options: "n: i: bytes: ignore-initial:", operands: "read", readOnly: true }],
  [
    "diff",
    {
      options:
        "U: C: W: I: F: x: X:< exclude-from:< from-file:< to-file:< label: L: unified? context? exclude: l! paginate! r recursive",
      below: "r recursive",
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "jq",
    {
      options: "f:< from-file:< L:< arg: argjson: slurpfile: rawfile: indent:",
      operands: "read",
      skip: 1,
      instead: "f from-file",
      readOnly: true,
    },
  ],
  [
    "sort",
    {
      options:
        "o:> output:> compress-program:! files0-from:< T:> temporary-directory:> random-source:< k: t: S: key: " +
        "field-separator: buffer-size: parallel: batch-size: sort: u n r unique",
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "uniq",
    {
      options: "f: s: w: skip-fields: skip-chars: check-chars:",
      operands: "copy",
      readOnly: true,
      caution: ({ operands, loose }) =>
        operands.length > 1 || loose ? "the second file of uniq is written" : undefined,
    },
  ],
  [
    "date",
    {
      options: "s:! set:! d: date: f:< file:< r:< reference:< I? iso-8601? rfc-3339:",
      operands: "none",
      readOnly: true,
      caution: ({ operands }) =>
        operands.some(({ text }) => !text.startsWith("+")) ? "date may set the clock" : undefined,
    },
  ],
  [
    "hostname",
    {
      options: "F:! file:! b!",
      operands: "none",
      readOnly: true,
      caution: ({ operands }) => (operands.length > 0 ? "hostname sets the name" : undefined),
    },
  ],
];
