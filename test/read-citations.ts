import { readCode, type Token } from "./source-tokens.ts";

/** The promise ids that one test title names in brackets. */
export interface Citation {
  readonly title: string;
  readonly ids: readonly string[];
  readonly line: number;
  /** The bracket holds something besides ids and commas, so some id may have been missed. */
  readonly isGarbled: boolean;
}

/** Finds `[DEF-3]` and `[DEF-3, DEF-4]` in the titles of tests and groups of tests; comments and test data do not count. */
export function readCitations(source: string): Citation[] {
  return readTitles(source).flatMap(({ text, line }) =>
    [...text.matchAll(/\[([^[\]]*\b[A-Z]{3}-\d+[^[\]]*)\]/g)].map(([, inside = ""]) => ({
      title: text,
      line,
      ids: [...inside.matchAll(/\b[A-Z]{3}-\d+\b/g)].map(([id]) => id),
      isGarbled: !/^[A-Z]{3}-\d+(, *[A-Z]{3}-\d+)*$/.test(inside),
    })),
  );
}

/** Marks set on a test with a dot, such as `only` of `test.only`. */
export function readTestMarks(source: string): Token[] {
  return readTestCalls(source).flatMap(({ marks }) => marks);
}

function readTitles(source: string): Token[] {
  return readTestCalls(source).flatMap(({ title }) => (title === undefined ? [] : [title]));
}

interface TestCall {
  readonly marks: readonly Token[];
  readonly title: Token | undefined;
}

const testWords = new Set(["test", "it", "describe"]);

function readTestCalls(source: string): TestCall[] {
  const tokens = readCode(source);
  return tokens.flatMap((token, index) => {
    const startsCall = token.type === "word" && testWords.has(token.text) && tokens[index - 1]?.text !== ".";
    return startsCall ? [readTestCall(tokens, index + 1)] : [];
  });
}

/** Follows `.each([…])("title"` to the title, whatever is between. */
function readTestCall(tokens: readonly Token[], start: number): TestCall {
  const marks: Token[] = [];
  let at = start;
  for (;;) {
    const token = tokens[at];
    const next = tokens[at + 1];
    if (token?.type === "mark" && token.text === "." && next !== undefined) {
      marks.push(next);
      at += 2;
    } else if (token?.type === "mark" && token.text === "(") {
      if (next?.type === "string" || next?.type === "template") return { marks, title: next };
      at = afterBracket(tokens, at);
    } else {
      return { marks, title: undefined };
    }
  }
}

function afterBracket(tokens: readonly Token[], start: number): number {
  let depth = 0;
  for (let at = start; at < tokens.length; at += 1) {
    const token = tokens[at];
    if (token?.type !== "mark") continue;
    if (token.text === "(") depth += 1;
    if (token.text === ")") depth -= 1;
    if (depth === 0) return at + 1;
  }
  return tokens.length;
}
