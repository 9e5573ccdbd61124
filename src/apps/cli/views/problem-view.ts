import type { Problem, Severity } from "../../../foundation/problem.ts";
import type { Paint } from "./colour.ts";
import { sourceExcerpt } from "./source-excerpt.ts";
import { harmless, pad, wrap } from "./text-width.ts";

export interface FileProblems {
  /** Absent for what belongs to no file. */
  readonly file?: string;
  readonly problems: readonly Problem[];
}

export interface ProblemViewOptions {
  readonly paint: Paint;
  readonly width: number;
  /** How a file is called before people: relative to where they are. */
  readonly nameOf: (file: string) => string;
  /** The text of a file, if it can be had. */
  readonly textOf: (file: string) => string | undefined;
}

/** Files in the order they were met, their problems from top to bottom; what belongs to no file comes last. */
export function groupByFile(problems: readonly Problem[]): FileProblems[] {
  const groups = Map.groupBy(problems, (problem) => problem.file);
  const files = [...groups].map(([file, members]) => ({
    ...(file === undefined ? {} : { file }),
    problems: [...members].sort((a, b) => (a.line ?? 0) - (b.line ?? 0)),
  }));
  return [
    ...files.filter(({ file }) => file !== undefined),
    ...files.filter(({ file }) => file === undefined),
  ];
}

export function renderProblems(groups: readonly FileProblems[], options: ProblemViewOptions): string {
  return groups.map((group) => renderFile(group, options)).join("\n");
}

export function countBySeverity(problems: readonly Problem[]): Readonly<Record<Severity, number>> {
  const counts = { error: 0, warning: 0, note: 0 };
  for (const { severity } of problems) counts[severity] += 1;
  return counts;
}

/** `2 errors, 1 warning`; what there is none of is left out. */
export function describeCounts(counts: Readonly<Record<Severity, number>>): string {
  const words = (["error", "warning", "note"] as const)
    .filter((severity) => counts[severity] > 0)
    .map((severity) => plural(counts[severity], severity));
  return words.length === 0 ? "no problems" : words.join(", ");
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function renderFile({ file, problems }: FileProblems, options: ProblemViewOptions): string {
  const heading = file === undefined ? "All agents together" : harmless(options.nameOf(file));
  const text = file === undefined ? undefined : options.textOf(file);
  const lines = text?.split(/\r?\n/);
  const blocks = problems.map((problem) => renderProblem(problem, lines, options));
  return `${options.paint.bold(heading)}\n${blocks.join("")}`;
}

function renderProblem(
  problem: Problem,
  lines: readonly string[] | undefined,
  { paint, width }: ProblemViewOptions,
): string {
  const place = problem.line === undefined ? "" : `${problem.line}:${problem.column ?? 1}`;
  const label = pad(`  ${pad(place, 6)} ${problem.severity}`, labelWidth);
  const styled = label.replace(problem.severity, paint[problem.severity](problem.severity));
  const [first = "", ...more] = wrap(`${harmless(problem.message)} [${problem.code}]`, width - labelWidth);
  const output = [`${styled}${first}`, ...more.map((line) => `${" ".repeat(labelWidth)}${line}`)];
  output.push(...excerptOf(problem, lines, paint, width));
  const advice = (problem.advice ?? "").split("\n").filter((line) => line !== "");
  for (const sentence of advice) {
    const [head = "", ...tail] = wrap(harmless(sentence), width - labelWidth - 2);
    output.push(`${" ".repeat(labelWidth)}${paint.good("→")} ${head}`);
    output.push(...tail.map((line) => `${" ".repeat(labelWidth + 2)}${line}`));
  }
  return `${output.join("\n").replace(/\[[\w-]+\](?=\n|$)/, paint.dim)}\n`;
}

function excerptOf(
  { line, column, length }: Problem,
  lines: readonly string[] | undefined,
  paint: Paint,
  width: number,
): string[] {
  const source = line === undefined ? undefined : lines?.[line - 1];
  if (line === undefined || source === undefined || source.trim() === "") return [];
  const room = Math.max(20, width - labelWidth - 3);
  const excerpt = sourceExcerpt(source, { column: column ?? 1, length: length ?? 1 }, room);
  const gutter = " ".repeat(labelWidth - 2);
  return [
    `${gutter}${paint.dim("|")} ${excerpt.text}`,
    `${gutter}${paint.dim("|")} ${excerpt.indent}${paint.error(excerpt.carets)}`,
  ];
}

const labelWidth = 17;
