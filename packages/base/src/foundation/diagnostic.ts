/** How bad a problem is: an error means the thing was not loaded, a warning that it was loaded differently than written. */
export type Severity = "error" | "warning" | "note";

/** A spot in a text file; lines and columns count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
  /** How many characters the caret underlines. */
  readonly length?: number;
}

/** Something a person should know about one of their files, with where it is and what to write instead. */
export interface Diagnostic extends Partial<Place> {
  readonly severity: Severity;
  /** Stable, kebab-case, for programs and for looking things up. */
  readonly code: string;
  readonly message: string;
  readonly advice?: string;
  readonly file?: string;
}

/** Where a value sits inside a parsed document: `["hooks", "Stop", 0]`. */
export type DocumentPath = readonly (string | number)[];

/** A problem seen in a value by code that knows neither file nor text; `placeFindings` gives it a place. */
export interface Issue {
  readonly severity: Severity;
  readonly code: string;
  readonly message: string;
  readonly advice?: string;
  readonly path: DocumentPath;
}

/** Finds a path in the text it was parsed from; falls back to the nearest parent that has a place. */
export type Locate = (path: DocumentPath) => Place | undefined;

export function placeFindings(
  issues: readonly Issue[],
  file: string | undefined,
  locate: Locate,
): Diagnostic[] {
  return issues.map(({ path, ...issue }) => ({
    ...issue,
    file,
    ...locate(path),
  }));
}

/** `path:line:column`, as far as it is known, in the form that editors and terminals open; empty without a file. */
export function placeText(
  { file, line, column }: Pick<Diagnostic, "file" | "line" | "column">,
  nameOf: (file: string) => string = (name) => name,
): string {
  if (file === undefined) return "";
  return line === undefined ? nameOf(file) : `${nameOf(file)}:${line}:${column ?? 1}`;
}

export function hasErrors(diagnostics: readonly { readonly severity: Severity }[]): boolean {
  return diagnostics.some((diagnostic) => diagnostic.severity === "error");
}

export function countBySeverity(diagnostics: readonly Diagnostic[]): Readonly<Record<Severity, number>> {
  const counts = { error: 0, warning: 0, note: 0 };
  for (const { severity } of diagnostics) counts[severity] += 1;
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
