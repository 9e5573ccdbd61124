import type { Judgement, Word } from "../model.ts";
import { isShownVariable } from "../private-name.ts";
import { environmentReason, judgement, type ProgramSpec } from "./judgement.ts";

const question = "help version";
const text = (options: string): ProgramSpec => ({ options, operands: "text", readOnly: true });

/** Options of programs for object files that name more arguments by `@file`. */
const withoutLists: Pick<ProgramSpec, "caution"> = {
  caution: ({ operands, options }, [program]) =>
    [...operands, ...options.flatMap(({ value }) => value ?? [])].some(({ text: word }) =>
      word.startsWith("@"),
    )
      ? `${program?.text} takes more arguments from a file that is named with @`
      : undefined,
};
/** They take a name without its ending for one with it. */
const expanding = (options: string, ...endings: readonly string[]): ProgramSpec => ({
  options: `${options} ${question}`,
  operands: "read",
  readOnly: true,
  renames: (path) => endings.map((ending) => `${path}${ending}`),
});

/** A pattern in the name of an archive, which these programs expand by themselves. */
export function archivePattern(program: string, operands: readonly Word[]): string | undefined {
  return operands.some(({ text: word }) => /[*?[\\]/.test(word))
    ? `${program} opens every archive that a pattern matches`
    : undefined;
}

/** Programs that show archives, object files and the machine. */
export const inspectingPrograms: readonly (readonly [string, ProgramSpec])[] = [
  // It is a script that starts gzip.
  [
    "zcat",
    {
      ...expanding("q v quiet verbose", ".gz", ".z", ".Z", "-gz", "-z", "_z", ".tgz", ".taz"),
      runsAs: "gzip -cd",
    },
  ],
  ["bzcat", expanding("q s small quiet", ".bz2", ".bz", ".tbz2", ".tbz")],
  ["xzcat", expanding("q quiet", ".xz", ".lzma", ".txz", ".tlz")],
  [
    "zipinfo",
    {
      options: "1 2 s m l v h t T z",
      operands: "read",
      readOnly: true,
      maxOperands: 1,
      renames: (path) => [`${path}.zip`, `${path}.ZIP`],
      caution: ({ operands }) => archivePattern("zipinfo", operands),
    },
  ],
  [
    "nm",
    {
      options:
        "a A B C D g n o p P r S s t: u debug-syms print-file-name no-demangle dynamic defined-only extern-only numeric-sort no-sort " +
        `portability print-size print-armap radix: reverse-sort size-sort undefined-only ${question}`,
      operands: "read",
      readOnly: true,
      ...withoutLists,
    },
  ],
  [
    "readelf",
    {
      options:
        "a h l S g t e s n r u d V A I W file-header program-headers segments section-headers sections section-groups " +
        `section-details headers syms symbols dyn-syms notes relocs unwind dynamic version-info arch-specific histogram wide ${question}`,
      operands: "read",
      readOnly: true,
      ...withoutLists,
    },
  ],
  [
    "size",
    {
      options: `A B G d o x t totals common format: radix: ${question}`,
      operands: "read",
      readOnly: true,
      ...withoutLists,
    },
  ],
  [
    "shuf",
    {
      options:
        "e i: n: o:> z echo input-range: head-count: output:> zero-terminated random-source:< help version",
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "bc",
    { options: "l q s w mathlib quiet standard warn h v help version", operands: "read", readOnly: true },
  ],
  ["factor", text(`h exponents ${question}`)],
  [
    "numfmt",
    text(
      "d: z debug delimiter: field: format: from: from-unit: grouping header? invalid: padding: round: suffix: to: to-unit: " +
        `zero-terminated ${question}`,
    ),
  ],
  ["cal", text("1 3 j y m s one three julian year monday sunday help version")],
  ["locale", text(`a c k all-locales category-name keyword-name ${question}`)],
  // `-v` names a program that it starts.
  ["getconf", text("a")],
  ["lscpu", text("B C? e? p? x y J bytes caches? extended? parse? hex physical json h V help version")],
  [
    "lsblk",
    text(
      "a b d D e: f I: i J l m n o: O p P r s S t x: z all bytes nodeps discard exclude: fs include: ascii json list perms " +
        "noheadings output: output-all paths pairs raw inverse scsi topology sort: zoned h V help version",
    ),
  ],
  ["whereis", text("b m s u l")],
  [
    "pgrep",
    text(
      "f! l a! x n o c i v P: u: U: G: d: full! list-name list-full! exact newest oldest count ignore-case inverse parent: euid: " +
        "uid: group: delimiter: h V help version",
    ),
  ],
];

/** Programs of developers that print their version or a summary without obeying a file of the folder. */
const questions: ReadonlyMap<string, RegExp> = new Map([
  ...(
    "make ninja cmake gcc g++ cc c++ clang clang++ ld gdb gh curl wget sqlite3 psql mysql pip pip3 deno bun uv ruff shellcheck tsc " +
    "kubectl helm"
  )
    .split(" ")
    .map((name): [string, RegExp] => [name, /^--(?:version|help)$/]),
  // What they say with `--help` comes from plugins, which they start.
  ["npx", /^--version$/],
  ["go", /^version$/],
  ["docker", /^--version$/],
  ["podman", /^--version$/],
  ["kubectl", /^(?:--help|version --client(?:=true)?)$/],
  ["helm", /^(?:--help|version(?: --short)?)$/],
  ["java", /^--?version$/],
  ["javac", /^--?version$/],
  ["ssh", /^-V$/],
  ["openssl", /^version(?: -[av])?$/],
  ["gh", /^(?:--version|--help|version)$/],
]);

/**
 * Whether a program is only asked for its version or a summary. Left out are those that look into the folder first:
 * cargo and rustc (`rust-toolchain.toml` may name a folder of the project), yarn and pnpm (a version of their own), mvn
 * and gradle (options of the JVM), dotnet (`global.json`), pytest and poetry (plugins).
 */
export function judgeQuestion(words: readonly Word[]): Judgement | undefined {
  const [program, ...rest] = words;
  const asked = questions.get(program?.text ?? "");
  if (asked === undefined || rest.length === 0 || !rest.every(({ literal }) => literal)) return undefined;
  return asked.test(rest.map(({ text: word }) => word).join(" ")) ? judgement(true, []) : undefined;
}

const psColumns =
  "pid ppid pgid pgrp sid sess user uid euser ruser group gid comm ucmd %cpu %mem pcpu pmem c rss rsz vsz sz size " +
  "stat state s time cputime etime etimes lstart start start_time stime bsdstart bsdtime tty tt tname nice ni pri priority nlwp " +
  "thcount lwp tid psr wchan f flags cls class";
const psColumn = `(?:${psColumns.split(" ").join("|")})`;
const psFormat = new RegExp(`^${psColumn}(?:=[\\w -]*)?(?:,${psColumn}(?:=[\\w -]*)?)*$`, "i");
const psOrder = new RegExp(`^[-+]?${psColumn}(?:,[-+]?${psColumn})*$`, "i");

const psValues: readonly (readonly [RegExp, RegExp])[] = [
  [/^(?:-[AadejlLMwHTy]*[oO]|[axwjlvTr]*o|--format)$/, psFormat],
  [/^--sort$/, psOrder],
  [/^(?:-[pCuUgGt]|--(?:pid|ppid|user|group|tty|cols|columns|width|rows|lines))$/, /^[\w.,@:/-]+$/],
];
const psWord = /^(?:-[AadejlLMwHTy]+|-V|--(?:forest|headers|no-headers|help|version))$/;

/**
 * `ps`: the letter `e` without a dash, and columns that are not listed, show the environment of other processes. Every
 * word without a dash, `-f` and some columns show their arguments, which may hold keys.
 */
export function judgePs(words: readonly Word[]): Judgement {
  const rest = words.slice(1);
  let isKnown = rest.every(({ literal }) => literal);
  for (let at = 0; at < rest.length; at += 1) {
    const [, option = "", attached] = /^(--\w+|[^=]+)(?:=(.*))?$/s.exec(rest[at]?.text ?? "") ?? [];
    const value = psValues.find(([pattern]) => pattern.test(option))?.[1];
    if (value === undefined) isKnown &&= attached === undefined && psWord.test(option);
    else {
      isKnown &&= value.test(attached ?? rest[at + 1]?.text ?? "");
      if (attached === undefined) at += 1;
    }
  }
  const unknown = "an argument of ps is not known to be harmless";
  return judgement(true, [], [environmentReason(words), isKnown ? undefined : unknown]);
}

/** `printenv NAME` of variables that may be shown; without a name it shows all of them. */
export function judgePrintenv(words: readonly Word[]): Judgement {
  const names = words.slice(1);
  const isPlain =
    names.length > 0 && names.every(({ text: name, literal }) => literal && isShownVariable(name));
  return judgement(true, [], [isPlain ? undefined : "variables of the environment may hold keys"]);
}
