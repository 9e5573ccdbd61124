/** A piece of TypeScript or JavaScript source. `text` of a string or template is what is between its quotes, escapes as written. */
export interface Token {
  readonly type: "word" | "string" | "template" | "regex" | "comment" | "mark";
  readonly text: string;
  readonly line: number;
}

/** Splits source into words, marks, strings and comments. Never throws; JSX text is read as if it were code. */
export function readTokens(source: string): Token[] {
  return scan({ source, at: 0, line: 1 }, false);
}

/** The tokens a compiler sees. */
export function readCode(source: string): Token[] {
  return readTokens(source).filter((token) => token.type !== "comment");
}

interface Cursor {
  readonly source: string;
  at: number;
  line: number;
}

/** Reads to the end, or to the brace that closes a template's substitution. */
function scan(cursor: Cursor, insideTemplate: boolean): Token[] {
  const tokens: Token[] = [];
  let previous: Token | undefined;
  let depth = 0;
  while (cursor.at < cursor.source.length) {
    const start = cursor.source.charAt(cursor.at);
    if (/\s/.test(start)) {
      skip(cursor, 1);
      continue;
    }
    if (insideTemplate && start === "}" && depth === 0) return tokens;
    if (start === "{") depth += 1;
    if (start === "}") depth -= 1;
    const { token, inner } = readToken(cursor, start, previous);
    tokens.push(token, ...inner);
    if (token.type !== "comment") previous = token;
  }
  return tokens;
}

function readToken(cursor: Cursor, start: string, previous: Token | undefined) {
  const { source, at, line } = cursor;
  const one = (type: Token["type"], text: string) => ({ token: { type, text, line }, inner: [] });
  if (source.startsWith("//", at) || (at === 0 && source.startsWith("#!"))) {
    return one("comment", take(cursor, endOfLine(source, at)));
  }
  if (source.startsWith("/*", at)) {
    const close = source.indexOf("*/", at + 2);
    return one("comment", take(cursor, close === -1 ? source.length : close + 2));
  }
  if (start === '"' || start === "'") return one("string", takeQuoted(cursor, start));
  if (start === "`") return readTemplate(cursor);
  if (start === "/" && mayStartRegex(previous)) return one("regex", take(cursor, endOfRegex(source, at)));
  const word = wordPattern(source, at);
  return word === "" ? one("mark", take(cursor, at + 1)) : one("word", take(cursor, at + word.length));
}

/** The substitutions' own tokens follow the template, so that what they import is seen. */
function readTemplate(cursor: Cursor): { token: Token; inner: Token[] } {
  const { source, at: opened, line } = cursor;
  const inner: Token[] = [];
  skip(cursor, 1);
  while (cursor.at < source.length && source[cursor.at] !== "`") {
    if (source.startsWith("${", cursor.at)) {
      skip(cursor, 2);
      inner.push(...scan(cursor, true));
      skip(cursor, 1);
    } else {
      skip(cursor, source[cursor.at] === "\\" ? 2 : 1);
    }
  }
  const text = source.slice(opened + 1, cursor.at);
  skip(cursor, 1);
  return { token: { type: "template", text, line }, inner };
}

/** A quote that is never closed ends with its line, so that one slip does not swallow the file. */
function takeQuoted(cursor: Cursor, quote: string): string {
  const { source, at } = cursor;
  let end = at + 1;
  while (end < source.length && source[end] !== quote && source[end] !== "\n") {
    end += source[end] === "\\" ? 2 : 1;
  }
  const text = source.slice(at + 1, end);
  take(cursor, source[end] === quote ? end + 1 : end);
  return text;
}

const wordsBeforeRegex = new Set(
  "return typeof case in of delete void throw new else do await yield instanceof default".split(" "),
);

/** After a value a slash divides; anywhere else it opens a regular expression. */
function mayStartRegex(previous: Token | undefined): boolean {
  if (previous === undefined) return true;
  if (previous.type === "word") return wordsBeforeRegex.has(previous.text);
  return previous.type === "mark" && ![")", "]", "}"].includes(previous.text);
}

function endOfRegex(source: string, at: number): number {
  let insideClass = false;
  let end = at + 1;
  for (; end < source.length && source[end] !== "\n"; end += 1) {
    const character = source[end];
    if (character === "\\") end += 1;
    else if (character === "[") insideClass = true;
    else if (character === "]") insideClass = false;
    else if (character === "/" && !insideClass) {
      return end + 1 + wordPattern(source, end + 1).length;
    }
  }
  return end;
}

function wordPattern(source: string, at: number): string {
  const pattern = /[\p{ID_Continue}$]+/uy;
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0] ?? "";
}

function endOfLine(source: string, at: number): number {
  const end = source.indexOf("\n", at);
  return end === -1 ? source.length : end;
}

function skip(cursor: Cursor, count: number): void {
  take(cursor, cursor.at + count);
}

function take(cursor: Cursor, end: number): string {
  const text = cursor.source.slice(cursor.at, end);
  cursor.line += text.split("\n").length - 1;
  cursor.at = Math.min(end, cursor.source.length);
  return text;
}
