import { analyseShell } from "../../src/permissions/shell-analysis.ts";
import type { Laboratory } from "./run-program.ts";
import { generateProgram } from "./shell-program.ts";

export interface Comparison {
  readonly programs: number;
  readonly opaque: number;
  readonly started: number;
  readonly misses: readonly Miss[];
}

export interface Miss {
  readonly seed: number;
  readonly program: string;
  /** Commands that bash started and the analysis did not see. */
  readonly unseen: readonly string[];
}

/** Runs generated programs in bash and looks for started commands that the analysis did not see. */
export async function comparePrograms(
  laboratory: Laboratory,
  first: number,
  count: number,
): Promise<Comparison> {
  let opaque = 0;
  let started = 0;
  const misses: Miss[] = [];
  for (let seed = first; seed < first + count; seed += 1) {
    const program = generateProgram(seed);
    const analysis = await analyseShell(program);
    if (analysis.opaque !== undefined) {
      opaque += 1;
      continue;
    }
    const seen = analysis.units.map(({ words: [name, number] }) => ({
      name: name?.text ?? "",
      // What is only known at run time is no name of a command, but may be the number.
      number: number?.literal === false ? undefined : (number?.text ?? ""),
    }));
    const ran = await laboratory.run(program);
    started += ran.length;
    const unseen = ran.filter(
      (command) =>
        !seen.some(({ name, number }) =>
          number === undefined ? command.startsWith(`${name} `) : command === `${name} ${number}`,
        ),
    );
    if (unseen.length > 0) misses.push({ seed, program, unseen });
  }
  return { programs: count, opaque, started, misses };
}
