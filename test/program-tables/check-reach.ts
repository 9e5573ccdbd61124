import { basename, join, relative } from "node:path";
import { loadAnalysis } from "@retinue/gate/shell/load-analysis.ts";
import type { PathOperand } from "@retinue/gate/shell/model.ts";
import { type Laboratory, quote } from "./laboratory.ts";
import type { Touched } from "./read-trace.ts";
import { sceneCalls } from "./scenes.ts";
import type { TableRow } from "./table-rows.ts";

interface Call {
  readonly row: TableRow;
  readonly words: readonly string[];
  readonly text: string;
  readonly operands: readonly PathOperand[];
  readonly readOnly: boolean;
}

/** What was found, and how many calls were run for it. */
export interface Reach {
  readonly calls: number;
  readonly diagnostics: ReadonlyMap<TableRow, readonly string[]>;
}

/**
 * Runs each row with files in the place of its value and of operands. Where the tables understand the call, so that a rule
 * with a star covers it, every file that the program touched must be among those the tables named.
 */
export async function checkReach(
  rows: readonly TableRow[],
  laboratories: readonly Laboratory[],
): Promise<Reach> {
  const diagnostics = new Map<TableRow, string[]>();
  const judged = await judgeAll(rows, laboratories[0] as Laboratory);
  const shards = await Promise.all(
    laboratories.map(async (laboratory, shard) => {
      const calls = judged.filter((_, at) => at % laboratories.length === shard);
      const outcomes = await laboratory.run(
        calls.map(({ text, row }) => (isEndless(row) ? `timeout -s KILL 0.2 ${text}` : text)),
        { traced: true },
      );
      return calls.flatMap((call, at) => {
        const { touched = [], acts = [] } = outcomes[at] ?? {};
        const found = [
          ...touched.filter((touch) => !isCovered(touch, call, laboratory)).map(describeTouch(laboratory)),
          ...acts.slice(isEndless(call.row) ? 1 : 0).filter(startsProbe),
        ];
        return [{ row: call.row, found: found.map((text) => `${call.words.join(" ")}: ${text}`) }];
      });
    }),
  );
  for (const { row, found } of shards.flat())
    if (found.length > 0) diagnostics.set(row, [...(diagnostics.get(row) ?? []), ...found]);
  return { calls: shards.flat().length, diagnostics };
}

async function judgeAll(rows: readonly TableRow[], { home, work }: Laboratory): Promise<Call[]> {
  const judged = await Promise.all(
    rows.flatMap((row) =>
      sceneCalls(row).map(async (words): Promise<Call[]> => {
        const analysis = await loadAnalysis(words.map(quote).join(" "), { home, directory: work });
        const { units, judged: text } = analysis;
        if (text === undefined || units.some(({ exactOnly }) => exactOnly !== undefined)) return [];
        const operands = units.flatMap((unit) => unit.operands);
        return [{ row, words, text, operands, readOnly: units.every(({ readOnly }) => readOnly) }];
      }),
    ),
  );
  return judged.flat();
}

/** A value that became a program. */
function startsProbe(act: string): boolean {
  return act.startsWith("execve") && act.includes("probe.txt");
}

/** Programs that may wait for ever. */
function isEndless({ table: { name } }: TableRow): boolean {
  return /^(?:tail|sleep|less|more|most|wget|curl|rsync|scp)$/.test(name);
}

function describeTouch({ work }: Laboratory): (touch: Touched) => string {
  return ({ path, use }) => `${use} ${relative(work, path)}`;
}

/** Files that steer what a search leaves out; nothing of them is shown. */
const searchFiles = /(?:^|\/)\.(?:git|gitignore|ignore|rgignore|fdignore)(?:\/|$)/;
/** Names that programs make up for a file until it is finished, or before it is removed. */
const temporary = /^(?:zi\w{6}|0+|(?:.*\/)?\.[\w.-]+\.\w{6}|[\w.-]+\.[or]\w{6})$/;
const links: ReadonlyMap<string, string> = new Map([
  ["link", "a.txt"],
  ["tree/leads-out", "outside.txt"],
  ["twin/leads-out", "outside.txt"],
]);

function isCovered({ path, use }: Touched, { operands }: Call, { work, home }: Laboratory): boolean {
  const place = relative(work, path);
  if (!path.startsWith(work)) return !path.startsWith(home);
  if (place === "" || (use === "read" && searchFiles.test(place)) || temporary.test(place)) return true;
  return operands.some((operand) => covers(operand, { place, use }));
}

function covers(
  { path, directory, use, below }: PathOperand,
  touch: { place: string; use: string },
): boolean {
  const written = join(directory, path);
  const named = links.get(written) ?? written;
  const { place } = touch;
  if (touch.use === "write" && use === "read") return false;
  if (place === named || place === written) return true;
  if (use === "copy" && place === join(named, basename(place))) return true;
  if (below === undefined) return false;
  const inside = relative(named, place);
  if (inside.startsWith("..")) return below === "follow" && [...links.values()].includes(place);
  return below !== "visible" || !/(?:^|\/)\./.test(inside);
}
