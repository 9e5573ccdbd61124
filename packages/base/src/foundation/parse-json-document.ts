import { findNodeAtLocation, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import type { Diagnostic, DocumentPath, Locate, Place } from "./diagnostic.ts";

/** A JSON text with its value and a way back from a value to its line. `value` is undefined only when `problem` is set. */
interface JsonDocument {
  readonly value: unknown;
  readonly diagnostic?: Diagnostic;
  readonly locate: Locate;
}

/** Parses strict JSON. Never throws: what is broken becomes one problem with the place where it breaks. */
export function parseJsonDocument(text: string, file?: string): JsonDocument {
  const source = withoutByteOrderMark(text);
  const shift = text.length - source.length;
  try {
    return { value: JSON.parse(source), locate: createLocate(source) };
  } catch (error) {
    return {
      value: undefined,
      diagnostic: syntaxDiagnostic(source, file, shift, error),
      locate: () => undefined,
    };
  }
}

function syntaxDiagnostic(
  source: string,
  file: string | undefined,
  shift: number,
  error: unknown,
): Diagnostic {
  const errors: ParseError[] = [];
  parseTreeSafely(source, errors);
  const first = errors[0];
  const place =
    first === undefined ? { line: 1, column: 1 } : placeOfOffset(source, first.offset, first.length);
  const code = first === undefined ? "InvalidJson" : printParseErrorCode(first.error);
  return {
    severity: "error",
    code: "invalid-json",
    message: `This is not valid JSON: ${explanations[code] ?? (error instanceof Error ? error.message : String(error))} (${code}).`,
    advice:
      code === "InvalidCommentToken"
        ? "Remove the comment: JSON has none."
        : "Fix the JSON here; none of the file was used.",
    file,
    ...place,
    column: place.line === 1 ? place.column + shift : place.column,
  };
}

const explanations: Readonly<Record<string, string>> = {
  InvalidSymbol:
    "there is a word or symbol where a value or punctuation was expected; often a quote inside a string needs a backslash",
  InvalidNumberFormat: "a number is malformed",
  PropertyNameExpected: "a property name in double quotes was expected; often an extra comma",
  ValueExpected: "a value was expected; often an extra comma",
  ColonExpected: "a colon was expected after the property name",
  CommaExpected: "a comma was expected between two entries",
  CloseBraceExpected: "a closing brace is missing",
  CloseBracketExpected: "a closing bracket is missing",
  EndOfFileExpected: "there is text after the end of the value",
  InvalidCommentToken: "comments are not allowed in JSON",
  UnexpectedEndOfComment: "a comment is not closed",
  UnexpectedEndOfString: "a string is not closed",
  UnexpectedEndOfNumber: "a number is not complete",
  InvalidUnicode: "a \\u escape is malformed",
  InvalidEscapeCharacter: "a backslash escape is unknown; a backslash itself is written \\\\",
  InvalidCharacter: "a control character is in a string; a line break is written \\n",
};

/** The tree parser recurses; JSON nested beyond the stack has no places, but is no reason to fail. */
function parseTreeSafely(source: string, errors: ParseError[]): ReturnType<typeof parseTree> {
  try {
    return parseTree(source, errors, { disallowComments: true, allowTrailingComma: false });
  } catch {
    return undefined;
  }
}

/** Each search walks the document; beyond so many they are not fixed one by one, and a hostile file would take minutes. */
const maxSearches = 10_000;

/** The tree with offsets is built only when a location is requested. */
function createLocate(source: string): Locate {
  let tree: ReturnType<typeof parseTree> | undefined;
  let searches = 0;
  return (path: DocumentPath) => {
    searches += 1;
    if (searches > maxSearches) return undefined;
    tree ??= parseTreeSafely(source, []);
    if (tree === undefined) return undefined;
    for (let depth = path.length; depth >= 0; depth -= 1) {
      const node = findNodeAtLocation(tree, path.slice(0, depth));
      if (node === undefined) continue;
      const named = node.parent?.type === "property" ? node.parent.children?.[0] : node;
      const target = named ?? node;
      return placeOfOffset(source, target.offset, Math.min(target.length, 80));
    }
    return undefined;
  };
}

export const byteOrderMark = "\uFEFF";

/** Where an offset is, counting lines and columns from 1. */
function placeOfOffset(text: string, offset: number, length?: number): Place {
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf("\n") + 1;
  let line = 1;
  for (let at = before.indexOf("\n"); at !== -1; at = before.indexOf("\n", at + 1)) line += 1;
  const place = { line, column: offset - lineStart + 1 };
  return length === undefined ? place : { ...place, length };
}

export function withoutByteOrderMark(text: string): string {
  return text.startsWith(byteOrderMark) ? text.slice(1) : text;
}
