import type { CommandSpec } from "./shell-command-spec.ts";

const compress: CommandSpec = { options: "S: o:> T: c d k", operands: "write" };
const pager: CommandSpec = {
  options:
    "o:> O:> log-file:> LOG-FILE:> k:! lesskey-file:! lesskey-src:! lesskey-content:! P: p: t: T:< tag-file:< x: y: z: b: h: j: D:",
  operands: "read",
  caution: (_, words) =>
    words.some(({ text }) => text.startsWith("+")) ? "a pager runs the command after +" : undefined,
};

/** Commands that write or remove files, and those whose options start programs. */
export const writingCommands: readonly (readonly [string, CommandSpec])[] = [
  ["touch", { options: "r:< reference:< d: t: date: time:", operands: "write" }],
  ["mkdir", { options: "m: mode: Z", operands: "write" }],
  ["rmdir", { operands: "remove" }],
  ["rm", { operands: "remove" }],
  ["unlink", { operands: "remove" }],
  ["shred", { options: "n: s: random-source:<", operands: "write" }],
  ["truncate", { options: "s: r:< size: reference:<", operands: "write" }],
  ["tee", { operands: "write" }],
  [
    "cp",
    {
      options: "t:> target-directory:> S: suffix: sparse: reflink? backup? r R a recursive archive",
      operands: "copy",
      below: "r R a recursive archive",
    },
  ],
  ["mv", { options: "t:> target-directory:> S: suffix: backup?", operands: "move", below: true }],
  ["ln", { options: "t:> target-directory:> S: suffix: backup?", operands: "copy" }],
  [
    "install",
    {
      options: "m: o: g: S: t:> mode: owner: group: strip-program:! s! strip! target-directory:>",
      operands: "copy",
    },
  ],
  ["chmod", { options: "reference:<", operands: "write", skip: 1, instead: "reference" }],
  ["chown", { options: "reference:< from:", operands: "write", skip: 1, instead: "reference" }],
  ["chgrp", { options: "reference:<", operands: "write", skip: 1, instead: "reference" }],
  ["split", { options: "filter:! b: C: l: n: a: t: additional-suffix:", operands: "copy" }],
  ["csplit", { options: "f:> prefix:> b: n:", operands: "read" }],
  [
    "patch",
    {
      options: "i:< input:< o:> output:> d:> directory:> r:> reject-file:> p: e!",
      operands: "write",
      implicit: true,
    },
  ],
  ["gzip", compress],
  ["gunzip", compress],
  ["bzip2", compress],
  ["bunzip2", compress],
  ["xz", { ...compress, options: "S: T: c d k files?< files0?<" }],
  ["unxz", { ...compress, options: "S: T: c d k files?< files0?<" }],
  ["zstd", compress],
  [
    "zip",
    {
      options: "T! unzip-command:! m! b:> temp-path:> O:> output-file:> P: n: i: x: t: tt: s: lf:> r q u",
      operands: "archive",
      below: true,
    },
  ],
  [
    "unzip",
    {
      options: "d:> P: x: O: I: l p t o n q j",
      operands: "read",
      landsHere: "d l p t",
    },
  ],
  [
    "xxd",
    {
      options: "c: g: l: s: o: r p i b u",
      operands: "copy",
      caution: ({ operands }) => (operands.length > 1 ? "the second file of xxd is written" : undefined),
    },
  ],
  ["less", pager],
  ["more", pager],
  ["most", pager],
  [
    "man",
    {
      options:
        "P:! pager:! H?! html?! C:! config-file:! M:! manpath:! l! local-file! p:! preprocessor:! B:! browser:! K k f s: S: L: m: e: r: E: T?! troff-device?! X?! gxditview?! Z!",
      operands: "none",
    },
  ],
  [
    "make",
    {
      options: "eval:! f: file: C: directory: j? I: o: W: l?",
      operands: "none",
      caution: ({ operands }) =>
        operands.some(({ text }) => /^\.?SHELL(?:FLAGS)?[:+?!]*=/.test(text))
          ? "make is given a shell"
          : undefined,
    },
  ],
  ...["npm", "pnpm", "yarn"].map((name): readonly [string, CommandSpec] => [
    name,
    {
      options:
        "script-shell:! shell:! prefix:! C:! dir:! cwd:! userconfig:! globalconfig:! node-options:! init-module:! git:! " +
        "editor:! viewer:! browser:! onload-script:! use-yarnrc:! modules-folder:! w: workspace: workspaces: silent s",
      operands: "none",
      caution: ({ operands }) =>
        operands[0]?.text === "config" && !/^(?:get|list|ls)$/.test(operands[1]?.text ?? "list")
          ? `a changed configuration of ${name} can start programs`
          : undefined,
    },
  ]),
];
