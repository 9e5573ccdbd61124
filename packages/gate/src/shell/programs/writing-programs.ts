import { isSafeVariable } from "../private-name.ts";
import { archivePattern } from "./inspecting-programs.ts";
import type { ProgramSpec } from "./judgement.ts";

/** What is left of a name without its ending, which says how it was compressed, and the name with such an ending. */
const withEnding =
  (...endings: readonly string[]) =>
  (path: string): readonly string[] => [
    ...endings.map((ending) => `${path}${ending}`),
    path.replace(/\.t(?:[gx]z|bz2?|zst|lz)$/, ".tar"),
    path.replace(/\.[^./]*$/, ""),
  ];
const compress = (options: string, ...endings: readonly string[]): ProgramSpec => ({
  options: `c d k f v q t 1 2 3 4 5 6 7 8 9 stdout decompress keep force verbose quiet test ${options}`,
  operands: "write",
  below: "r recursive",
  follows: "f force",
  renames: withEnding(...endings),
  readOnlyWith: "c stdout d decompress l list t test v verbose q quiet k keep",
  readOnlyNeeds: "c stdout l list t test",
});
const gzip = compress("S:! suffix:! l list r recursive n no-name N! name! fast best", ".gz");
const bzip2 = compress("z compress s small fast best", ".bz2", ".out");
const xz = compress(
  "S:! suffix:! T: threads: F: format: l list z e 0 files?< files0?< memlimit:",
  ".xz",
  ".lzma",
);
const zstd = compress(
  "o:> D:< T? l list r! z compress rm C check no-check ultra fast? long? no-progress",
  ".zst",
);

const more: ProgramSpec = {
  options:
    "d l e f p c s u n: silent logical exit-on-eof no-pause print-over clean-print squeeze plain lines: help version",
  numeric: true,
  operands: "read",
  readOnly: true,
  runsAs: "cat",
  caution: (_, words) =>
    words.some(({ text }) => text.startsWith("+")) ? "a pager runs the command after +" : undefined,
};

const pager: ProgramSpec = {
  options:
    "o:> O:> log-file:> LOG-FILE:> k:! lesskey-file:! lesskey-src:! lesskey-content:! T:<! tag-file:<! F X R S N n i I e E s S m M g G p: x: j:",
  operands: "read",
  readOnly: true,
  runsAs: "cat",
  caution: (_, words) =>
    words.some(({ text }) => text.startsWith("+")) ? "a pager runs the command after +" : undefined,
};

/** Programs that write or remove files, and those whose options start programs. */
export const writingPrograms: readonly (readonly [string, ProgramSpec])[] = [
  [
    "touch",
    {
      options: "a c d: f h m r:< t: no-create date: no-dereference reference:< time: help version",
      operands: "write",
    },
  ],
  ["mkdir", { options: "m: p v Z mode: parents verbose context? help version", operands: "write" }],
  ["rmdir", { options: "p v parents verbose ignore-fail-on-non-empty help version", operands: "remove" }],
  [
    "rm",
    {
      options:
        "f i I r R d v force interactive? one-file-system no-preserve-root preserve-root? recursive dir verbose help version",
      operands: "remove",
      below: "r R recursive",
    },
  ],
  ["unlink", { operands: "remove" }],
  [
    "shred",
    {
      options: "f n: s: u v x z force iterations: size: remove? verbose exact zero random-source:<",
      operands: "remove",
    },
  ],
  ["truncate", { options: "c o r:< s: no-create io-blocks reference:< size:", operands: "remove" }],
  ...["srm", "wipe", "trash", "trash-put", "rimraf"].map((name): readonly [string, ProgramSpec] => [
    name,
    { options: "r R f v", operands: "remove", below: true },
  ]),
  ["tee", { options: "a i p append ignore-interrupts output-error? help version", operands: "write" }],
  [
    "cp",
    {
      options:
        "t:> target-directory:> sparse: reflink? a f i H L n p R r T u v x Z archive " +
        "attributes-only copy-contents force interactive dereference no-clobber preserve? no-preserve: " +
        "recursive remove-destination strip-trailing-slashes no-target-directory update? verbose one-file-system help version",
      operands: "copy",
      below: "r R a recursive archive",
      follows: "L dereference",
    },
  ],
  [
    "mv",
    {
      options:
        "t:> target-directory:> f i n T u v force interactive no-clobber strip-trailing-slashes " +
        "no-target-directory update? verbose help version",
      operands: "move",
      below: true,
    },
  ],
  [
    "ln",
    {
      options:
        "t:> target-directory:> d F f i L n P r s T v directory force interactive logical no-dereference physical " +
        "relative symbolic no-target-directory verbose help version",
      operands: "copy",
    },
  ],
  [
    "install",
    {
      options:
        "m: o: g: t:> mode: owner: group: strip-program:! s! strip! target-directory:> C c d D p T v compare directory " +
        "preserve-timestamps no-target-directory verbose help version",
      operands: "copy",
    },
  ],
  [
    "chmod",
    {
      options:
        "c f v R reference:< changes quiet silent verbose recursive preserve-root no-preserve-root help version",
      operands: "write",
      skip: 1,
      instead: "reference",
      below: "R recursive",
    },
  ],
  ...["chown", "chgrp"].map((name): readonly [string, ProgramSpec] => [
    name,
    {
      options:
        "c f v h R H L P reference:< from: changes quiet silent verbose recursive dereference no-dereference preserve-root help version",
      operands: "write",
      skip: 1,
      instead: "reference",
      below: "R recursive",
      follows: "L",
    },
  ]),
  [
    "split",
    {
      options:
        "filter:! b: C: l: n: a: t: d e x u additional-suffix: bytes: lines: number: suffix-length: numeric-suffixes? verbose help version",
      operands: "filter",
      landsHere: "help version",
      caution: ({ operands }) =>
        operands.length > 1
          ? "the names of the files that split writes only begin with what it is given"
          : undefined,
    },
  ],
  [
    "csplit",
    {
      options:
        "f:> prefix:> b: n: k s z suffix-format: digits: keep-files quiet silent elide-empty-files help version",
      operands: "read",
      landsHere: "help version",
    },
  ],
  [
    "patch",
    {
      options:
        "i:< input:< o:> output:> d:> directory:> r:> reject-file:> p: N R E s t f b u c n l e! strip: forward reverse dry-run silent batch force",
      operands: "write",
      implicit: true,
      below: true,
    },
  ],
  ...["gzip", "gunzip"].map((name): readonly [string, ProgramSpec] => [name, gzip]),
  ...["bzip2", "bunzip2"].map((name): readonly [string, ProgramSpec] => [name, bzip2]),
  ["zstd", zstd],
  ...["xz", "unxz"].map((name): readonly [string, ProgramSpec] => [name, xz]),
  [
    "zip",
    {
      options:
        "T! unzip-command:! m! b:> temp-path:> O:> output-file:> P: n: i:@ x:@ t: s: r q u j 0 1 9 y X D e v recurse-paths quiet",
      operands: "archive",
      below: true,
      follows: true,
      removes: [{ options: "m", operands: "rest" }],
    },
  ],
  [
    "unzip",
    {
      options: "d:> P: x l p t o n q j v z C L u",
      operands: "read",
      landsHere: "d l p t v",
      readOnlyWith: "l v",
      renames: (path) => [`${path}.zip`, `${path}.ZIP`],
      caution: ({ operands }) => archivePattern("unzip", operands),
    },
  ],
  ["less", pager],
  ["more", more],
  ["most", pager],
  [
    "man",
    {
      options:
        "P:! pager:! H?! html?! C:! config-file:! M:! manpath:! l! local-file! p:! preprocessor:! B:! browser:! K k f w s: S: L: m: e: r: E: T?! troff-device?! X?! gxditview?! Z!",
      operands: "text",
    },
  ],
  [
    "make",
    {
      options:
        "eval:! f:! file:! makefile:! C: directory: I:! include-dir:! j? jobs? l? load-average? o: W: B always-make i ignore-errors k keep-going n just-print dry-run " +
        "q question s silent quiet w print-directory no-print-directory r R S t touch v version help O? output-sync? warn-undefined-variables",
      operands: "text",
      obeysDirectory: true,
      enters: "C directory",
      caution: ({ operands }) =>
        operands.every(({ text, literal }) => literal && isMakeOperand(text))
          ? undefined
          : "make is given a variable that may change what it runs",
    },
  ],
];

function isMakeOperand(text: string): boolean {
  const name = /^([^=:+?!]*)[:+?!]*=/.exec(text)?.[1];
  return name === undefined
    ? /^[\w.%/:@+,-]+$/.test(text)
    : isSafeVariable(name) || /^(?:V|VERBOSE|ARGS|TEST|TESTS)$/.test(name);
}
