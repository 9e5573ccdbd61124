import { type Diagnostic, placeText } from "@retinue/base/foundation/diagnostic.ts";
import type { Paint } from "../../shared/paint.ts";
import { cutAt, stripControlCharacters, widthOf, wrap } from "../../shared/strip-control-characters.ts";

export interface FileDiagnostics {
  /** Absent for what belongs to no file. */
  readonly file?: string;
  readonly diagnostics: readonly Diagnostic[];
}

export interface DiagnosticViewOptions {
  readonly paint: Paint;
  readonly width: number;
  /** How a file is called before people: relative to where they are. */
  readonly nameOf: (file: string) => string;
  /** The text of a file, if it can be had. */
  readonly textOf: (file: string) => string | undefined;
}

/** Files by name, their problems from top to bottom; what belongs to no file comes last. */
export function groupByFile(diagnostics: readonly Diagnostic[]): FileDiagnostics[] {
  const groups = Map.groupBy(diagnostics, (diagnostic) => diagnostic.file);
  const files = [...groups]
    .sort(([a = ""], [b = ""]) => (a < b ? -1 : 1))
    .map(([file, members]) => ({
      file,
      diagnostics: [...members].sort(byPlace),
    }));
  return [
    ...files.filter(({ file }) => file !== undefined),
    ...files.filter(({ file }) => file === undefined),
  ];
}

function byPlace(a: Diagnostic, b: Diagnostic): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

export function renderDiagnostics(
  groups: readonly FileDiagnostics[],
  options: DiagnosticViewOptions,
): string {
  return groups.map((group) => renderFile(group, options)).join("\n");
}

function renderFile({ file, diagnostics }: FileDiagnostics, options: DiagnosticViewOptions): string {
  const text = file === undefined ? undefined : options.textOf(file);
  const lines = text?.split(/\r?\n/);
  return diagnostics.map((diagnostic) => renderDiagnostic(diagnostic, lines, options)).join("");
}

function renderDiagnostic(
  diagnostic: Diagnostic,
  lines: readonly string[] | undefined,
  { paint, width, nameOf }: DiagnosticViewOptions,
): string {
  const { severity, code, advice = "" } = diagnostic;
  const where = stripControlCharacters(placeText(diagnostic, nameOf));
  const place = where === "" ? "" : `${where}: `;
  const label = `${place}${severity}:`;
  const [first = "", ...rest] = wrap(
    `${label} ${stripControlCharacters(diagnostic.message)} [${code}]`,
    width,
  );
  const more = wrap(rest.join(" "), width - indent.length).filter((line) => line !== "");
  const sentence = [first, ...more.map((line) => `${indent}${line}`)].join("\n");
  const heading = sentence
    .replace(label, () => `${where === "" ? "" : `${paint.bold(where)}: `}${paint[severity](severity)}:`)
    .replace(/\[[\w-]+\]$/, (text) => paint.dim(text));
  const hints = advice.split("\n").filter((hint) => hint !== "");
  const output = [
    heading,
    ...excerptOf(diagnostic, lines, { paint, width }),
    ...hints.flatMap((hint) => renderAdvice(hint, { paint, width })),
  ];
  return `${output.join("\n")}\n`;
}

function renderAdvice(
  advice: string,
  { paint, width }: Pick<DiagnosticViewOptions, "paint" | "width">,
): string[] {
  return wrap(stripControlCharacters(advice), width - indent.length - 2).map(
    (line, index) => `${indent}${index === 0 ? paint.good("→") : " "} ${line}`,
  );
}

function excerptOf(
  { line, column, length }: Diagnostic,
  lines: readonly string[] | undefined,
  { paint, width }: Pick<DiagnosticViewOptions, "paint" | "width">,
): string[] {
  const source = line === undefined ? undefined : lines?.[line - 1];
  if (line === undefined || source === undefined || source.trim() === "") return [];
  const gutter = `${indent}${String(line).padStart(2)} | `;
  const room = Math.max(20, width - gutter.length);
  const excerpt = sourceExcerpt(source, { column: column ?? 1, length: length ?? 1 }, room);
  const empty = gutter.replace(/\d/g, " ");
  return [
    `${paint.dim(gutter)}${excerpt.text}`,
    `${paint.dim(empty)}${excerpt.indent}${paint.error(excerpt.carets)}`,
  ];
}

const indent = "    ";

interface SourceExcerpt {
  readonly text: string;
  /** Spaces that put the carets under the place. */
  readonly indent: string;
  readonly carets: string;
}

/** One line of a file around a place, in at most `width` cells, with the carets that belong under it. */
export function sourceExcerpt(
  line: string,
  place: { readonly column: number; readonly length: number },
  width: number,
): SourceExcerpt {
  const shown = stripControlCharacters(line.replace(/^\ufeff/, " ")).trimEnd();
  const from = Math.min(Math.max(0, place.column - 1), shown.length);
  const start = widthOf(shown) <= width ? 0 : startOfWindow(shown, from, width);
  const head = start === 0 ? "" : "…";
  const rest = shown.slice(start);
  const isCut = widthOf(head + rest) > width;
  const body = isCut ? `${cutAt(rest, width - widthOf(head) - 1)}…` : rest;
  const before = widthOf(head + shown.slice(start, from));
  const marked = Math.max(1, widthOf(shown.slice(from, from + place.length)));
  const carets = "^".repeat(Math.max(1, Math.min(marked, width - before)));
  return { text: head + body, indent: " ".repeat(before), carets };
}

/** A third of the room goes to what is before the place. */
function startOfWindow(line: string, from: number, width: number): number {
  if (widthOf(line.slice(0, from)) <= width * 0.6) return 0;
  let start = from;
  while (start > 0 && widthOf(line.slice(start - 1, from)) <= width / 3) start -= 1;
  return /[\udc00-\udfff]/.test(line[start] ?? "") ? start + 1 : start;
}
