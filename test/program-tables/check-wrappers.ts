import { loadAnalysis } from "@retinue/gate/shell/load-analysis.ts";
import type { ShellWord } from "@retinue/gate/shell/model.ts";
import { wrapperSpecs } from "@retinue/gate/shell/wrapper-specs.ts";
import { findProgram, type Laboratory, quote } from "./laboratory.ts";
import { plainTable, rowsOf, type TableRow } from "./table-rows.ts";

/** A program that prints what it was given, in the folder of the laboratory. */
export const recorderSetup = String.raw`
printf '#!/bin/sh\nprintf "recorded%%s\\n" "$(printf "|%%s" "$@")"\n' > recorder
chmod +x recorder
`;

/** Those that change the user or need a terminal, and those that would trace what is being traced. */
const leftAlone = /^(?:sudo|doas|pkexec|runuser|chroot|watch|strace|ltrace|builtin)$/;
const builtins = /^(?:command|exec|time)$/;

const operands: ReadonlyMap<string, readonly string[]> = new Map([
  ["timeout", ["5"]],
  ["chrt", ["-o", "0"]],
  ["taskset", ["1"]],
  ["flock", ["lock"]],
  ["setarch", ["x86_64"]],
]);
const values: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "env u": "UNSET",
    "env unset": "UNSET",
    "env C": ".",
    "env chdir": ".",
    "env S": "./recorder zero",
    "env split-string": "./recorder zero",
    "timeout s": "KILL",
    "timeout signal": "KILL",
    "xargs a": "names",
    "xargs arg-file": "names",
    "xargs d": "x",
    "xargs I": "two",
    "xargs i": "two",
    "xargs replace": "two",
    "xargs s": "2000",
    "xargs max-chars": "2000",
    "xargs E": "x",
    "time f": "%e",
    "time format": "%e",
    "time o": "timed",
    "time output": "timed",
    "stdbuf i": "0",
    "stdbuf input": "0",
  }),
);

export interface WrapperVerdicts {
  readonly rows: number;
  /** Rows with which the inner program did start. */
  readonly started: number;
  readonly skipped: readonly string[];
  readonly diagnostics: readonly string[];
}

/** Whether what wrappers start, with each of their options, is the command that was taken out of them. */
export async function checkWrappers(
  laboratory: Laboratory,
  choose: (calls: readonly (readonly string[])[]) => readonly (readonly string[])[] = (calls) => calls,
): Promise<WrapperVerdicts> {
  const skipped: string[] = [];
  const rows: TableRow[] = [];
  const plain: string[] = [];
  for (const [name, { options = "" }] of wrapperSpecs) {
    const isHere = builtins.test(name) || (await findProgram(name)) !== undefined;
    if (leftAlone.test(name) || !isHere) {
      skipped.push(name);
      continue;
    }
    plain.push(name);
    rows.push(...rowsOf(plainTable(name, options)));
  }
  const calls = choose([...plain.map((name) => [name, ...inner(name)]), ...rows.flatMap(callsOf)]);
  const texts = calls.map(
    (words) => `printf 'from input' | ${words.map((word, at) => (at === 0 ? word : quote(word))).join(" ")}`,
  );
  const outcomes = await laboratory.run(texts.map((text) => `( ${text} )`));
  const verdicts = await Promise.all(
    texts.map(async (text, at) => {
      const recorded = [...(outcomes[at]?.output ?? "").matchAll(/^recorded\|?(.*)$/gm)].map(
        ([, given = ""]) => given,
      );
      const { units, opaque } = await loadAnalysis(text, {
        home: laboratory.home,
        directory: laboratory.work,
      });
      const seen = units
        .filter(({ words }) => words[0]?.text === "./recorder")
        .map(({ words }) => words.slice(1));
      const missed = recorded.filter(
        (given) =>
          opaque === undefined &&
          !seen.some((words) => matches(words, given.split("|"), text.includes("| xargs "))),
      );
      return {
        started: recorded.length > 0,
        diagnostics: missed.map((given) => `${text} started recorder ${given}`),
      };
    }),
  );
  return {
    rows: rows.length,
    started: verdicts.filter(({ started }) => started).length,
    skipped,
    diagnostics: verdicts.flatMap(({ diagnostics }) => diagnostics),
  };
}

function inner(name: string): readonly string[] {
  return [...(operands.get(name) ?? []), "./recorder", "one", "-x", "two"];
}

function callsOf({ table, name, option, signs }: TableRow): readonly (readonly string[])[] {
  const value = values.get(`${table.name} ${name}`) ?? "1";
  const attached = name.length === 1 ? `${option}${value}` : `${option}=${value}`;
  const bare = signs.includes(":") ? [option, value] : [option];
  const forms = /[:?]/.test(signs) ? [bare, [attached]] : [bare];
  return forms.map((given) => [table.name, ...given, ...inner(table.name)]);
}

/** Words that are not known before may be any number of words, and `xargs` adds further ones. */
function matches(words: readonly ShellWord[], given: readonly string[], isOpen: boolean): boolean {
  const unknown = words.findIndex(({ literal }) => !literal);
  const known = unknown === -1 ? words : words.slice(0, unknown);
  const isLong = unknown !== -1 || isOpen || words.length === given.length;
  return isLong && known.every(({ text }, at) => text === given[at]);
}
