/** A line that begins something with a name. */
export interface OutlineEntry {
  readonly line: number;
  readonly text: string;
  readonly name: string;
}

export interface NumberedLine {
  readonly number: number;
  readonly text: string;
}

const word = String.raw`([\p{L}_$][\p{L}\p{N}_$]*)`;
const modifiers = String.raw`(?:(?:export|default|declare|async|abstract|public|private|protected|internal|static|final|sealed|override|open|data|pub(?:\([^)]*\))?|unsafe|const|extern|inline)\s+)*`;
const keywords =
  "function\\*?|class|interface|enum|struct|trait|union|module|namespace|package|def|fn|func|fun|sub|type|object|protocol|extension|record|macro_rules!|defmodule|defp?";

/** Forms in which common languages give something a name; the name is the first group. */
const namedForms: readonly RegExp[] = [
  new RegExp(`^\\s*${modifiers}(?:${keywords})\\s+(?:\\([^)]*\\)\\s*)?${word}`, "u"),
  new RegExp(`^(?:export\\s+)?(?:const|let|var|val|static)\\s+(?:mut\\s+)?${word}`, "u"),
  new RegExp(`^${word}\\s*\\(\\)\\s*\\{`, "u"),
  new RegExp(`^\\s*#\\s*define\\s+${word}`, "u"),
  new RegExp(
    `^\\s*create\\s+(?:or\\s+replace\\s+)?(?:table|view|function|procedure|index)\\s+(?:if\\s+not\\s+exists\\s+)?["\`]?${word}`,
    "iu",
  ),
];

/** What a line gives a name to, by its form alone. */
export function nameDefinedIn(line: string): string | undefined {
  if (line.length > 400) return undefined;
  for (const form of namedForms) {
    const name = form.exec(line)?.[1];
    if (name !== undefined) return name;
  }
  return undefined;
}

export function outlineOf(lines: readonly NumberedLine[]): readonly OutlineEntry[] {
  return lines.flatMap(({ number, text }) => {
    const name = nameDefinedIn(text);
    return name === undefined ? [] : [{ line: number, text: text.trim().replace(/\s*[{:]\s*$/, ""), name }];
  });
}

export function headingsOf(lines: readonly NumberedLine[]): readonly OutlineEntry[] {
  let isCode = false;
  return lines.flatMap(({ number, text }) => {
    if (/^\s*(?:```|~~~)/.test(text)) isCode = !isCode;
    const [, name] = /^#{1,6}\s+(.+?)\s*#*$/.exec(text) ?? [];
    return isCode || name === undefined ? [] : [{ line: number, text: text.trim(), name }];
  });
}

/** The comment a file begins with, or the first that is before code; without its signs. */
export function firstComment(lines: readonly NumberedLine[]): string | undefined {
  const texts = lines.map(({ text }) => text).slice(0, 200);
  const joined = texts.join("\n");
  const [, block] = /(?:^|\n)\s*(?:\/\*\*?|"""|''')([\s\S]*?)(?:\*\/|"""|''')/.exec(joined) ?? [];
  const start = texts.findIndex((text) => /^(?:\/\/|#(?!!|include|define)|--)\s*\S/.test(text));
  const run = start === -1 ? [] : texts.slice(start);
  const end = run.findIndex((text) => !/^(?:\/\/|#|--)/.test(text));
  const comment = block ?? run.slice(0, end === -1 ? run.length : end).join("\n");
  const plain = comment
    .replace(/^\s*(?:\/\/+!?|#+|--|\*)\s?/gm, "")
    .replace(/\s+/g, " ")
    .trim();
  return plain === "" ? undefined : plain.slice(0, 400);
}

/** Modules a file names as its needs. */
export function importsOf(lines: readonly NumberedLine[]): readonly string[] {
  const joined = lines.map(({ text }) => text).join("\n");
  const forms = [
    /^\s*(?:import|export)\b[^"'\n]*["']([^"'\n]+)["']/gm,
    /^\s*\}\s*from\s*["']([^"'\n]+)["']/gm,
    /\brequire\(["']([^"'\n]+)["']\)/g,
    /^(?:from\s+([\w.]+)\s+import\b|import\s+([\w.]+)\s*$)/gm,
    /^\s*(?:use|using|#include)\s+([^;\n]+?);?$/gm,
  ];
  const found = forms.flatMap((form) =>
    [...joined.matchAll(form)].map((match) => match[1] ?? match[2] ?? ""),
  );
  return [...new Set(found.filter((name) => name !== ""))].toSorted((a, b) => (a < b ? -1 : 1));
}
