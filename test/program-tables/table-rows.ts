import {
  diffOptions,
  gitChangingCommands,
  gitReadingCommands,
  logOptions,
} from "@retinue/gate/shell/programs/git-commands.ts";
import { awkOptions, tarOptions } from "@retinue/gate/shell/programs/judge-command.ts";
import { gitGlobals } from "@retinue/gate/shell/programs/judge-git.ts";
import { jqOptions } from "@retinue/gate/shell/programs/judge-jq.ts";
import { sedOptions } from "@retinue/gate/shell/programs/judge-sed.ts";
import type { ProgramSpec } from "@retinue/gate/shell/programs/judgement.ts";
import { curlOptions, networkPrograms, wgetOptions } from "@retinue/gate/shell/programs/network-programs.ts";
import { readingPrograms } from "@retinue/gate/shell/programs/reading-programs.ts";
import { writingPrograms } from "@retinue/gate/shell/programs/writing-programs.ts";
import { type OptionTable, optionTable } from "@retinue/gate/shell/word.ts";
import { wrapperSpecs } from "@retinue/gate/shell/wrapper-specs.ts";

/** One table of options, and the words its options follow. */
export interface ProgramTable {
  /** Such as `sort` or `git log`. */
  readonly name: string;
  readonly command: readonly string[];
  readonly options: OptionTable;
  /** Options without a sign that says otherwise run without a question. */
  readonly readOnly: boolean;
  readonly letters?: ProgramSpec["letters"];
}

/** One option of a table. */
export interface TableRow {
  readonly table: ProgramTable;
  /** Without dashes. */
  readonly name: string;
  readonly signs: string;
  /** With dashes. */
  readonly option: string;
  /** The words that it follows. */
  readonly command: readonly string[];
}

/** Options of subcommands of git that belong to another verb than the rest of their table. */
const rowCommands: readonly (readonly [readonly string[], ReadonlySet<string>])[] = Object.entries({
  "git stash push": "k keep-index no-keep-index include-untracked message",
  "git stash pop": "index",
  "git worktree add": "b B d f force detach checkout no-checkout lock reason track no-track",
  "git bundle create new.bundle": "branches tags",
  "git remote get-url": "all push",
  "git notes": "ref",
}).map(([text, names]) => {
  const words = text.split(" ");
  return [words, new Set(names.split(" ").map((name) => `git ${words[1]} ${name}`))] as const;
});

const rows = new WeakMap<ProgramTable, readonly TableRow[]>();

export function rowsOf(table: ProgramTable): readonly TableRow[] {
  const known = rows.get(table);
  if (known !== undefined) return known;
  const made = [...table.options].map(([name, signs]) => ({
    table,
    name,
    signs,
    option: `${name.length === 1 ? "-" : "--"}${name}`,
    command: rowCommands.find(([, names]) => names.has(`${table.name} ${name}`))?.[0] ?? table.command,
  }));
  rows.set(table, made);
  return made;
}

/** Whether a call with this option runs without a question. */
export function isHarmless({ table, signs }: TableRow): boolean {
  return table.readOnly && !/[!>]/.test(signs);
}

function specTable([name, spec]: readonly [string, ProgramSpec]): ProgramTable {
  const options = optionTable(spec.options ?? "");
  const letters = spec.letters === undefined ? {} : { letters: spec.letters };
  return { name, command: [name], options, readOnly: spec.readOnly === true, ...letters };
}

function tableOf(name: string, options: OptionTable, readOnly: boolean): ProgramTable {
  return { name, command: [name], options, readOnly };
}

/** A table of options in the form in which it is written, for a program that does more than read. */
export function plainTable(name: string, options: string): ProgramTable {
  return tableOf(name, optionTable(options), false);
}

/** Words after a subcommand of git without which it takes none of its options. */
const gitVerbs: ReadonlyMap<string, string> = new Map([
  ["stash", "list"],
  ["worktree", "list"],
  ["bundle", "create"],
  ["notes", "add"],
]);

/** Options that several subcommands read by the same code are examined once, with `git log`. */
const shared = optionTable(diffOptions + logOptions);

/** `sharesRows`: options that `git log` has too are left out. */
export function gitTable(
  name: string,
  options: OptionTable,
  readOnly: boolean,
  sharesRows = true,
): ProgramTable {
  const verb = gitVerbs.get(name);
  const isSharing =
    sharesRows && name !== "log" && [...optionTable(diffOptions).keys()].every((key) => options.has(key));
  return {
    name: `git ${name}`,
    command: ["git", name, ...(verb === undefined ? [] : [verb])],
    options: isSharing ? new Map([...options].filter(([key]) => !shared.has(key))) : options,
    readOnly,
  };
}

/** Programs that have the table of another one are left out. */
function withoutTwins(tables: readonly ProgramTable[]): readonly ProgramTable[] {
  const seen = new Set<string>();
  return tables.filter(({ options }) => {
    const key = [...options].join(" ");
    const isTwin = key !== "" && seen.has(key);
    seen.add(key);
    return !isTwin;
  });
}

export const programTables: readonly ProgramTable[] = withoutTwins([
  ...readingPrograms.map(specTable),
  tableOf("sed", sedOptions, true),
  tableOf("jq", jqOptions, true),
  tableOf("gawk", awkOptions, true),
  ...writingPrograms.map(specTable),
  ...networkPrograms.map(specTable),
  tableOf("tar", tarOptions, false),
  tableOf("curl", curlOptions, false),
  tableOf("wget", wgetOptions, false),
  ...[...wrapperSpecs].map(([name, { options = "" }]) => plainTable(name, options)),
]);

export const gitTables: readonly ProgramTable[] = [
  { name: "git", command: ["git"], options: gitGlobals, readOnly: false },
  ...gitReadingCommands.map(([name, { options }]) => gitTable(name, options, true)),
  ...gitChangingCommands.map(([name, { options }]) => gitTable(name, options, false)),
];
