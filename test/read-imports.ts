import { readCode, type Token } from "./source-tokens.ts";

/** One place where a file names another module. */
export interface ModuleImport {
  readonly specifier: string;
  /** `types` vanishes when the code is built, `dynamic` is loaded when the line runs. */
  readonly kind: "static" | "dynamic" | "types";
  readonly line: number;
}

/** What was found in each text; several tests ask for the same files. */
const known = new Map<string, readonly ModuleImport[]>();

/** Every `import`, `export … from` and `import("literal")` of a source text; a computed specifier is not seen. */
export function readImports(source: string): readonly ModuleImport[] {
  const found = known.get(source) ?? findImports(source);
  known.set(source, found);
  return found;
}

function findImports(source: string): ModuleImport[] {
  const tokens = readCode(source);
  return tokens.flatMap((token, index) => {
    if (token.type !== "word" || isMark(tokens[index - 1], ".")) return [];
    const read = readers.get(token.text);
    const found = read?.(tokens, index + 1);
    return found === undefined ? [] : [{ ...found, line: token.line }];
  });
}

/** The package a specifier belongs to, or undefined for own files and what Node brings. */
export function packageOf(specifier: string): string | undefined {
  if (specifier.startsWith(".") || specifier.startsWith("node:")) return undefined;
  const parts = specifier.split("/");
  return specifier.startsWith("@") ? parts.slice(0, 2).join("/") : parts[0];
}

type Found = Omit<ModuleImport, "line"> | undefined;

const readers = new Map([
  ["import", readImport],
  ["export", readExport],
]);

function readImport(tokens: readonly Token[], at: number): Found {
  const next = tokens[at];
  if (next?.type === "string") return { specifier: next.text, kind: "static" };
  if (isMark(next, "(")) {
    const argument = tokens[at + 1];
    const isLiteral = argument?.type === "string" || argument?.type === "template";
    return isLiteral ? { specifier: argument.text, kind: "dynamic" } : undefined;
  }
  const specifier = readFrom(tokens, at);
  if (specifier === undefined) return undefined;
  const afterType = tokens[at + 1];
  const namesTypes = isWord(next, "type") && !isMark(afterType, ",") && !isWord(afterType, "from");
  return { specifier, kind: namesTypes ? "types" : "static" };
}

function readExport(tokens: readonly Token[], at: number): Found {
  const namesTypes = isWord(tokens[at], "type");
  const start = namesTypes ? at + 1 : at;
  if (!isMark(tokens[start], "{") && !isMark(tokens[start], "*")) return undefined;
  const specifier = readFrom(tokens, start);
  return specifier === undefined ? undefined : { specifier, kind: namesTypes ? "types" : "static" };
}

/** Walks over the clause only, so that an `export { a }` without `from` does not borrow the next statement's. */
function readFrom(tokens: readonly Token[], start: number): string | undefined {
  let closed = false;
  for (let at = start; at < tokens.length; at += 1) {
    const token = tokens[at];
    const next = tokens[at + 1];
    if (isWord(token, "from") && next?.type === "string") return next.text;
    if (closed) return undefined;
    closed = isMark(token, "}");
    const belongs = token?.type === "word" || token?.type === "string";
    if (!belongs && !["{", "}", ",", "*"].some((mark) => isMark(token, mark))) return undefined;
  }
  return undefined;
}

function isMark(token: Token | undefined, text: string): boolean {
  return token?.type === "mark" && token.text === text;
}

function isWord(token: Token | undefined, text: string): boolean {
  return token?.type === "word" && token.text === text;
}
