import { loadAnalysis } from "@retinue/gate/shell/load-analysis.ts";
import { findProgram, type Laboratory, type Outcome, quote } from "./laboratory.ts";
import { operandsOf, rowWords, sampleValue } from "./row-samples.ts";
import { isHarmless, type ProgramTable, rowsOf, type TableRow } from "./table-rows.ts";

/** What running a row showed. */
export interface Verdict {
  /** Why it cannot be checked on this machine. */
  readonly skipped?: string;
  readonly diagnostics: readonly string[];
  /** It was run as a call that needs no question. */
  readonly ran: boolean;
}

/** Programs that change the user, or that a test should not start for another reason. */
const leftAlone = /^(?:sudo|doas|pkexec|runuser|chroot|man)$/;
const bogus = "--zzz-unknown";
const unknownLetter = "-~";

/**
 * Runs every option of the tables. Each is before an option that no program has: whether the program complains about
 * that one, or takes it for a value, shows how many words the option takes.
 */
export async function checkRows(
  chosen: readonly TableRow[],
  { probes, uses }: { readonly probes: Laboratory; readonly uses: Laboratory },
): Promise<ReadonlyMap<TableRow, Verdict>> {
  const verdicts = new Map<TableRow, Verdict>();
  const { present } = await presentTables([...new Set(chosen.map(({ table }) => table))]);
  const rows = chosen.filter(({ table }) => present.includes(table));
  for (const row of chosen)
    if (!present.includes(row.table))
      verdicts.set(row, { skipped: `${row.table.command[0]} is not run here`, diagnostics: [], ran: false });
  const arities = await checkArities(present, rows, probes);
  const harms = await checkUses(rows, uses);
  for (const row of rows) {
    const { isUnknown = false, diagnostics = [] } = arities.get(row) ?? {};
    const harm = isUnknown ? [] : (harms.get(row) ?? []);
    const skipped = isUnknown ? `this version of ${row.table.name} does not have it` : undefined;
    verdicts.set(row, {
      skipped,
      diagnostics: isUnknown ? [] : [...diagnostics, ...harm],
      ran: harms.has(row),
    });
  }
  return verdicts;
}

/** Tables of programs that can be run on this machine, and the names of the others. */
export async function presentTables(
  tables: readonly ProgramTable[],
): Promise<{ readonly present: readonly ProgramTable[]; readonly missing: readonly string[] }> {
  const found = await Promise.all(
    tables.map(async ({ command: [program = ""], name }) => {
      if (leftAlone.test(name)) return false;
      const paths = await Promise.all((program === "fd" ? ["fd", "fdfind"] : [program]).map(findProgram));
      return paths.some((path) => path !== undefined);
    }),
  );
  return {
    present: tables.filter((_, at) => found[at]),
    missing: tables.filter((_, at) => !found[at]).map(({ name }) => name),
  };
}

interface Arity {
  readonly isUnknown?: boolean;
  readonly diagnostics?: readonly string[];
}

/** How a program complains about options that it does not have. */
interface Complaints {
  readonly long: readonly string[];
  readonly letter: readonly string[];
}

async function checkArities(
  tables: readonly ProgramTable[],
  rows: readonly TableRow[],
  laboratory: Laboratory,
): Promise<ReadonlyMap<TableRow, Arity>> {
  const runAll = (calls: readonly (readonly string[])[]) =>
    laboratory.run(calls.map((words) => words.map(quote).join(" ")));
  const said = await runAll(
    tables.flatMap((table) =>
      [bogus, unknownLetter].map((word) => [...table.command, word, ...operandsOf(table)]),
    ),
  );
  const complaints = new Map(
    tables.map((table, at) => [table, readComplaints(said[2 * at], said[2 * at + 1])] as const),
  );
  const forms = rows
    .filter(({ name, table }) => !ends(name, table))
    .flatMap((row) => formsOf(row).map((form) => ({ row, ...form })));
  const outcomes = await runAll(forms.map(({ words }) => words));
  const doubtful = forms.flatMap((form, at) => {
    const outcome = outcomes[at];
    const reading = readOutcome(form.row, outcome, complaints.get(form.row.table));
    return reading === form.expected || reading === "unknown" ? [] : [{ form, outcome, reading }];
  });
  // Without anything after it, an option that takes a value says so, and one that ends the program says the same as before.
  const alone = await runAll(doubtful.map(({ form }) => form.alone));
  const diagnostics = doubtful.flatMap(({ form, outcome, reading }, at) =>
    untold.test(`${form.row.table.name} ${form.row.option}`) || agrees(form.expected, outcome, alone[at])
      ? []
      : [{ row: form.row, text: `${form.words.join(" ")}: ${reading}, expected ${form.expected}` }],
  );
  const own = new Map(rows.map((row) => [row, { isUnknown: true, diagnostics: [] as string[] }]));
  forms.forEach(({ row }, at) => {
    const entry = own.get(row);
    if (entry !== undefined && readOutcome(row, outcomes[at], complaints.get(row.table)) !== "unknown")
      entry.isUnknown = false;
  });
  for (const { row, text } of diagnostics) own.get(row)?.diagnostics.push(text);
  for (const row of rows.filter(({ name, table }) => ends(name, table)))
    own.set(row, { isUnknown: false, diagnostics: [] });
  return own;
}

/** `rg --engine` takes a value that does not look like an option; `git rev-parse` prints options that it does not recognize. */
const untold = /^(?:rg --engine|git rev-parse --(?:short|verify))$/;

/** Options after which a program looks at nothing else. */
function ends(name: string, { command: [program = ""] }: ProgramTable): boolean {
  return (
    /^(?:help|version)$/.test(name) ||
    (name === "exec-path" && program === "git") ||
    (name === "v" && program === "xxd")
  );
}

type Reading = "takes the next word" | "leaves the next word" | "unknown";

interface Form {
  readonly words: readonly string[];
  /** The same call without anything behind the option. */
  readonly alone: readonly string[];
  readonly expected: Reading;
}

/** The ways to write an option: by itself, with an attached value, behind another letter. */
function formsOf(row: TableRow): readonly Form[] {
  const { table, option, signs, name, command } = row;
  const rest = operandsOf(table);
  const isFirst = /^(?:gawk|mawk|git)$/.test(table.name);
  const form = (given: string, expected: Reading): Form => ({
    words: [...command, given, bogus, ...rest],
    alone: isFirst ? [...command, given] : [...command, ...rest, given],
    expected,
  });
  const plain = form(option, signs.includes(":") ? "takes the next word" : "leaves the next word");
  const { letters = "plain" } = table;
  if (signs.includes("?")) {
    const value = sampleValue(row);
    return [
      plain,
      form(name.length === 1 ? `${option}${value}` : `${option}=${value}`, "leaves the next word"),
    ];
  }
  if (!isHarmless(row) || !signs.includes(":") || table.command[0] === "git") return [plain];
  const value = sampleValue(row);
  const isAttachable = name.length > 1 || letters === "plain" || (letters === "none" && /^\d+$/.test(value));
  const flag = rowsOf(table).find((other) => other.name.length === 1 && other.signs === "")?.name;
  const isJoined = flag !== undefined && name.length === 1 && letters !== "none";
  return [
    plain,
    ...(isAttachable
      ? [form(name.length === 1 ? `${option}${value}` : `${option}=${value}`, "leaves the next word")]
      : []),
    ...(isJoined ? [form(`-${flag}${name}`, "takes the next word")] : []),
  ];
}

function readComplaints(long: Outcome | undefined, letter: Outcome | undefined): Complaints {
  const lines = (outcome: Outcome | undefined, mark: string): readonly string[] => {
    const all = (outcome?.output ?? "").split("\n").filter((line) => line.trim() !== "");
    const naming = all.filter((line) => line.includes(mark));
    return naming.length > 0 ? naming : all.slice(0, 1);
  };
  return { long: lines(long, "zzz-unknown"), letter: lines(letter, "~") };
}

function readOutcome(
  { name }: TableRow,
  outcome: Outcome | undefined,
  { long, letter }: Complaints = { long: [], letter: [] },
): Reading {
  const output = outcome?.output ?? "";
  const [lines, mark] = name.length === 1 ? [letter, "~"] : [long, "zzz-unknown"];
  const isNamed = lines.some((line) => line.includes(mark) && output.includes(line.replace(mark, name)));
  if (isNamed || (name.length > 1 && output.startsWith("Illegal option --"))) return "unknown";
  if (namesValue.test(output)) return "takes the next word";
  const complains =
    long.some((line) => output.includes(line)) ||
    /(?:unknown|invalid|unrecognized|illegal)[^\n]*zzz-unknown/i.test(output) ||
    /^usage: git/m.test(output);
  return complains ? "leaves the next word" : "takes the next word";
}

/** Complaints about the value of an option, in which the word that was given is too. */
const namesValue = /regex engine|--type argument|var=value form|config format/;
const wantsValue =
  /requires? (?:an?|the) (?:\w+ )?(?:value|argument|parameter)|value is required|argument required|expects? a|requires? (?:value|argument)|needs? an? (?:value|argument)|missing/i;

function agrees(expected: Reading, outcome: Outcome | undefined, alone: Outcome | undefined): boolean {
  if (outcome === undefined || alone === undefined) return false;
  if (expected === "takes the next word") return alone.code !== 0 && wantsValue.test(alone.output);
  return alone.output === outcome.output && (alone.code === 0 || !wantsValue.test(alone.output));
}

/** Options for which a program ends with another code than 0 although it did what was asked. */
const answersWithOne =
  /^(?:grep|rg|diff|cmp|tty|sort -[cC]|sort --check|xxd -h|hostname -h|hostname --help|id -Z|git (?:diff|log) --(?:exit-code|quiet|check)|git config --(?:global|system))\b/;

/** Runs what the gate would run for each option that needs no question. */
async function checkUses(
  rows: readonly TableRow[],
  laboratory: Laboratory,
): Promise<ReadonlyMap<TableRow, readonly string[]>> {
  const place = { home: laboratory.home, directory: laboratory.work };
  const judged = await Promise.all(
    rows.filter(isHarmless).map(async (row) => {
      const words = rowWords(row);
      const { units, judged: text } = await loadAnalysis(words.map(quote).join(" "), place);
      const isFree = text !== undefined && units.every(({ readOnly }) => readOnly);
      return isFree ? [{ row, words, text }] : [];
    }),
  );
  const calls = judged.flat();
  const outcomes = await laboratory.run(
    calls.map(({ text, row }) => (isEndless(row) ? `timeout -s KILL 0.05 ${text}` : text)),
    { traced: true },
  );
  return new Map(
    calls.map(({ row, words }, at) => {
      const { code = -1, output = "", acts = [] } = outcomes[at] ?? {};
      const call = words.join(" ");
      const isRight = code === 0 || isEndless(row) || answersWithOne.test(call);
      return [
        row,
        [
          ...(isRight ? [] : [`${call} ended with ${code}: ${output.slice(0, 200)}`]),
          ...acts.filter((act) => !isOwn(row, act)).map((act) => `${call}: ${act}`),
        ],
      ] as const;
    }),
  );
}

function isEndless({ table, name }: TableRow): boolean {
  return table.name === "tail" && /^(?:f|F|follow|retry)$/.test(name);
}

/** A program that is a script starts the one it means. */
function isOwn(row: TableRow, act: string): boolean {
  const started = /^execve\("[^"]*\/([^"/]+)"/.exec(act)?.[1];
  if (started === undefined) return false;
  return (isEndless(row) && started === "tail") || (/^[ef]grep$/.test(row.table.name) && started === "grep");
}
