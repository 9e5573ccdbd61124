import { actingForms, harmlessForms } from "./builtin-forms.ts";
import { checkBuiltins } from "./check-builtins.ts";
import { checkContents } from "./check-contents.ts";
import { checkActing, checkGrammars, checkStarted, judge } from "./check-grammars.ts";
import { checkReach } from "./check-reach.ts";
import { checkRows, presentTables } from "./check-rows.ts";
import { checkWrappers, recorderSetup } from "./check-wrappers.ts";
import { askingCommands, everydayCommands } from "./everyday-commands.ts";
import { grammarRows, jqRows } from "./grammar-calls.ts";
import { findProgram, type Laboratory, openLaboratory } from "./laboratory.ts";
import { fileSetup, setup } from "./row-samples.ts";
import { sceneSetup } from "./scenes.ts";
import { gitTables, programTables, rowsOf, type TableRow } from "./table-rows.ts";

/** What one part of the tests found. */
export interface Findings {
  /** Such as `4101 options, 2041 of them run as they would be without a question`. */
  readonly figures: string;
  /** What this machine cannot show about, by name. */
  readonly skipped: readonly string[];
  readonly diagnostics: readonly string[];
}

const links = { fd: "fdfind" };

/** Every nth, so that a sample has some of each table. */
const every =
  (step: number) =>
  <T>(items: readonly T[]): readonly T[] =>
    items.filter((_, at) => at % step === 0);

async function using<T>(
  laboratories: readonly Promise<Laboratory>[],
  run: (opened: readonly Laboratory[]) => Promise<T>,
): Promise<T> {
  const opened = await Promise.all(laboratories);
  try {
    return await run(opened);
  } finally {
    await Promise.all(opened.map((laboratory) => laboratory.close()));
  }
}

/** Options: how many words each takes, that it works, and that nothing changes where it needs no question. */
export function checkOptions(step = 1): Promise<Findings> {
  const tables = [...programTables, ...gitTables];
  return using(
    [openLaboratory({ setup, links }), openLaboratory({ setup, links })],
    async ([probes, uses]) => {
      if (probes === undefined || uses === undefined)
        throw new Error("there is no folder to run programs in");
      const before = await uses.look();
      const verdicts = await checkRows(every(step)(tables.flatMap(rowsOf)), { probes, uses });
      const after = await uses.look();
      const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
        (path) => before.get(path) !== after.get(path),
      );
      const found = [...verdicts];
      return {
        figures: `${found.length} options, ${found.filter(([, { ran }]) => ran).length} of them run as they would be without a question`,
        skipped: found.flatMap(([row, { skipped }]) =>
          skipped === undefined ? [] : [`${nameOf(row)}: ${skipped}`],
        ),
        diagnostics: [
          ...found.flatMap(([, { diagnostics }]) => diagnostics),
          ...changed.map((path) => `${path} was changed`),
        ],
      };
    },
  );
}

function nameOf({ table, option }: TableRow): string {
  return `${table.name} ${option}`;
}

/** Files: whatever a program opens or changes is among the paths that the tables name. */
export async function checkFiles(step = 1): Promise<Findings> {
  const options = { setup: fileSetup + sceneSetup, links };
  const { present, missing } = await presentTables(programTables);
  const rows = every(step)(present.flatMap(rowsOf));
  const isChanging = ({ table }: TableRow): boolean => !table.readOnly && !/^(?:curl|wget)$/.test(table.name);
  const changing = { ...options, resets: true };
  const laboratories = [openLaboratory(options), openLaboratory(changing), openLaboratory(changing)];
  return using(laboratories, async ([reader, ...changers]) => {
    if (reader?.traces !== true)
      return { figures: "0 calls", skipped: ["there is no strace here"], diagnostics: [] };
    const reading = await checkReach(
      rows.filter((row) => !isChanging(row)),
      [reader],
    );
    const writing = await checkReach(rows.filter(isChanging), changers);
    return {
      figures: `${reading.calls + writing.calls} calls of ${rows.length} options`,
      skipped: missing,
      diagnostics: [reading, writing].flatMap(({ diagnostics }) => [...diagnostics.values()].flat()),
    };
  });
}

/** Contents: git shows what it holds only where the tables allow it. */
export function checkHistory(step = 1): Promise<Findings> {
  return using([openLaboratory({ setup })], async ([laboratory]) => {
    if (laboratory === undefined) throw new Error("there is no folder to run programs in");
    const { calls, diagnostics } = await checkContents(laboratory, every(step));
    return { figures: `${calls} calls of git that show no contents`, skipped: [], diagnostics };
  });
}

/** Languages: each word of the scripts of sed, awk, jq and find, and what these could do beyond. */
export function checkLanguages(step = 1): Promise<Findings> {
  const options = { setup: fileSetup + sceneSetup, links };
  // Calls that act must not find what others did: one of them deletes a file that another one reads.
  const laboratories = [openLaboratory(options), openLaboratory({ ...options, resets: true })];
  return using(laboratories, async ([laboratory, changing]) => {
    if (laboratory?.traces !== true || changing === undefined)
      return { figures: "0 words", skipped: ["there is no strace here"], diagnostics: [] };
    const programs = ["sed", "gawk", "mawk", "jq", "find"];
    const found = await Promise.all(programs.map(findProgram));
    const present = programs.filter((_, at) => found[at] !== undefined);
    const builtins = await laboratory.run(["jq -nr 'builtins[]'"]);
    const rows = [...grammarRows, ...jqRows(builtins[0]?.output.split("\n") ?? [])].filter(({ program }) =>
      present.includes(program),
    );
    const verdicts = await checkGrammars(every(step)(rows), laboratory);
    const acting = await checkActing(changing, present);
    return {
      figures: `${verdicts.length} words of ${present.join(", ")}`,
      skipped: [
        ...programs.filter((name) => !present.includes(name)),
        ...verdicts.flatMap(({ row, isMissing }) => (isMissing ? [`${row.program} ${row.word}`] : [])),
      ],
      diagnostics: [
        ...verdicts.flatMap(({ diagnostics }) => diagnostics),
        ...acting,
        ...(await checkStarted(laboratory)),
      ],
    };
  });
}

/** The shell: forms of builtins, and what wrappers start. */
export function checkShell(step = 1): Promise<Findings> {
  return using(
    [openLaboratory({ setup: fileSetup + sceneSetup + recorderSetup, links })],
    async ([laboratory]) => {
      if (laboratory === undefined) throw new Error("there is no folder to run programs in");
      const builtins = await checkBuiltins(laboratory, {
        harmless: every(step)(harmlessForms),
        acting: every(step)(actingForms),
      });
      const wrappers = await checkWrappers(laboratory, every(step));
      return {
        figures: `${harmlessForms.length + actingForms.length} forms of builtins, ${wrappers.rows} options of wrappers, with which a program was started ${wrappers.started} times`,
        skipped: wrappers.skipped,
        diagnostics: [...builtins, ...wrappers.diagnostics],
      };
    },
  );
}

/** Commands of every day, which must stay easy. */
export function checkEveryday(): Promise<Findings> {
  return using([openLaboratory({ setup: fileSetup })], async ([laboratory]) => {
    if (laboratory === undefined) throw new Error("there is no folder to run programs in");
    const isFree = async (command: string): Promise<boolean> => (await judge(command, laboratory)).isFree;
    const free = await Promise.all(everydayCommands.map(isFree));
    const asking = await Promise.all(askingCommands.map(isFree));
    return {
      figures: `${everydayCommands.length} commands`,
      skipped: [],
      diagnostics: [
        ...everydayCommands.filter((_, at) => free[at] === false).map((command) => `${command} asks`),
        ...askingCommands.filter((_, at) => asking[at] === true).map((command) => `${command} does not ask`),
      ],
    };
  });
}
