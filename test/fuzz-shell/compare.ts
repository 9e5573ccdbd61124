import { loadAnalysis } from "@retinue/gate/shell/load-analysis.ts";
import type { ShellAnalysis } from "@retinue/gate/shell/model.ts";
import type { Laboratory, Started } from "./run-program.ts";
import { generateProgram, markers } from "./shell-program.ts";

export interface Comparison {
  readonly programs: number;
  /** Programs that must not run without a question. */
  readonly opaque: number;
  /** Commands that the others started. */
  readonly started: number;
  readonly misses: readonly Miss[];
}

export interface ComparisonOptions {
  readonly first: number;
  readonly count: number;
  /** Makes the program of a seed; absent means whole programs. */
  readonly generate?: (seed: number) => string;
}

export interface Miss {
  readonly seed: number;
  readonly program: string;
  readonly judged: string;
  readonly reason: string;
}

/**
 * Runs generated programs in bash, as written and as judged: both must start the same commands with the same
 * arguments, and every argument that the analysis calls literal must be one of those.
 */
export async function comparePrograms(
  laboratory: Laboratory,
  { first, count, generate = generateProgram }: ComparisonOptions,
): Promise<Comparison> {
  let opaque = 0;
  let started = 0;
  const misses: Miss[] = [];
  for (let from = first; from < first + count; from += batchSize) {
    const seeds = Array.from({ length: Math.min(batchSize, first + count - from) }, (_, at) => from + at);
    const judgedPrograms = await Promise.all(seeds.map((seed) => judge(generate(seed), seed, laboratory)));
    const open = judgedPrograms.filter((each) => each.analysis.judged !== undefined);
    opaque += seeds.length - open.length;
    const ran = await laboratory.run(
      open.flatMap(({ program, analysis }) => [program, analysis.judged ?? ""]),
    );
    for (const [at, { seed, program, analysis }] of open.entries()) {
      const original = ran[2 * at] ?? [];
      const judged = ran[2 * at + 1] ?? [];
      started += judged.length;
      // A program that is killed may have been at any point.
      if ([...original, ...judged].some(([name]) => name === "timeout")) continue;
      const differs = difference(original, judged);
      const isSame = differs === undefined || (await isRace(laboratory, program, analysis.judged ?? ""));
      const reason = isSame ? unseen(judged, analysis) : differs;
      if (reason !== undefined) misses.push({ seed, program, judged: analysis.judged ?? "", reason });
    }
  }
  return { programs: count, opaque, started, misses };
}

const batchSize = 100;
const repetitions = 8;

/** In a pipe or in the background, what is started depends on who is first; both must be able to start the same. */
async function isRace(laboratory: Laboratory, program: string, judged: string): Promise<boolean> {
  const ran = await laboratory.run(Array.from({ length: repetitions }, () => [program, judged]).flat());
  const originals = ran.filter((_, at) => at % 2 === 0);
  return ran.some(
    (started, at) =>
      at % 2 === 1 && originals.some((original) => difference(original, started) === undefined),
  );
}

async function judge(program: string, seed: number, { home, work }: Laboratory) {
  return { seed, program, analysis: await loadAnalysis(program, { home, directory: work }) };
}

/** Commands that run side by side may come in any order. */
function difference(original: readonly Started[], judged: readonly Started[]): string | undefined {
  const texts = (list: readonly Started[]): readonly string[] =>
    list.map((words) => JSON.stringify(words)).sort();
  const [left, right] = [texts(original), texts(judged)];
  const at = left.findIndex((text, index) => text !== right[index]);
  if (at === -1 && left.length === right.length) return undefined;
  return `bash started ${left[at] ?? "nothing more"} as written, ${right[at === -1 ? left.length : at] ?? "nothing"} as judged`;
}

/** Every command that ran is a unit of the analysis, word by word where the words are literal. */
function unseen(judged: readonly Started[], { units }: ShellAnalysis): string | undefined {
  const known = units.filter(({ words: [name] }) =>
    (markers as readonly string[]).includes(name?.text ?? ""),
  );
  const missing = judged.find(
    (argv) =>
      !known.some(({ words }) => {
        const end = words.findIndex(({ literal }) => !literal);
        const certain = end === -1 ? words : words.slice(0, end);
        return (
          (end !== -1 || words.length === argv.length || isExtended(words.length, argv.length, units)) &&
          certain.every(({ text }, at) => text === argv[at] || /^(?:~|\$HOME)/.test(text))
        );
      }),
  );
  return missing === undefined ? undefined : `no unit of the analysis is ${JSON.stringify(missing)}`;
}

/** `xargs` and `find -exec` add words of their own. */
function isExtended(known: number, ran: number, units: ShellAnalysis["units"]): boolean {
  return (
    ran > known &&
    units.some(({ restrictTexts }) => restrictTexts.some((text) => /\b(?:xargs|find)\b/.test(text)))
  );
}
