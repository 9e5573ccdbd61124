/** The value of unquoted text: a backslash keeps the next character, and joins lines. */
export function unescapePlain(source: string): string {
  return source.includes("\\")
    ? source.replace(/\\([\s\S])/g, (_, next: string) => (next === "\n" ? "" : next))
    : source;
}

/** The value of text between double quotes. */
export function unescapeDouble(source: string): string {
  if (!source.includes("\\")) return source;
  return source.replace(/\\([$`"\\\n])/g, (_, next: string) => (next === "\n" ? "" : next));
}

/** The value of text in a here-document whose delimiter is not quoted. */
export function unescapeDocument(source: string): string {
  if (!source.includes("\\")) return source;
  return source.replace(/\\([$`\\\n])/g, (_, next: string) => (next === "\n" ? "" : next));
}

/** A text between double quotes that bash reads as exactly this. */
export function escapeDouble(text: string): string {
  return text.replace(/[\\"$`]/g, "\\$&");
}

const simpleEscapes: ReadonlyMap<string, string> = new Map([
  ["n", "\n"],
  ["t", "\t"],
  ["r", "\r"],
  ["a", "\x07"],
  ["b", "\b"],
  ["e", "\x1b"],
  ["E", "\x1b"],
  ["f", "\f"],
  ["v", "\v"],
  ["\\", "\\"],
  ["'", "'"],
  ['"', '"'],
  ["?", "?"],
]);

const escapeSequence =
  /\\(?:x([0-9A-Fa-f]{1,2})(?!\{)|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|([\s\S]))/y;

/** The value of `$'…'`; undefined where it has an escape sequence that is not certain. */
export function decodeAnsiC(source: string): string | undefined {
  const body = source.slice(2, -1);
  let value = "";
  for (let at = 0; at < body.length; ) {
    if (body[at] !== "\\") {
      value += body[at];
      at += 1;
      continue;
    }
    escapeSequence.lastIndex = at;
    const found = escapeSequence.exec(body);
    if (found === null) return undefined;
    const decoded = decodeEscape(found);
    if (decoded === undefined) return undefined;
    value += decoded;
    at += found[0].length;
  }
  return value;
}

function decodeEscape([, hex, short, long, octal, sign]: RegExpExecArray): string | undefined {
  const digits = hex ?? short ?? long;
  if (digits === undefined && octal === undefined) return simpleEscapes.get(sign ?? "");
  const code = digits === undefined ? Number.parseInt(octal ?? "", 8) : Number.parseInt(digits, 16);
  // Bytes above ASCII are parts of characters, and NUL ends the text.
  const isByte = hex !== undefined || octal !== undefined;
  if (code === 0 || code > 0x10ffff || (isByte && code > 0x7f) || (code >= 0xd800 && code <= 0xdfff))
    return undefined;
  return String.fromCodePoint(code);
}

const plainList = /^\{[\w./:@%+=-]*(?:,[\w./:@%+=-]*)+\}$/;
const numberRange = /^\{(-?\d{1,6})\.\.(-?\d{1,6})\}$/;
const letterRange = /^\{([a-z])\.\.([a-z])\}$|^\{([A-Z])\.\.([A-Z])\}$/;

/** The words of a simple brace expansion; undefined for one that is not certain. */
export function expandBraces(source: string): readonly string[] | undefined {
  if (plainList.test(source) && !source.includes("..")) return source.slice(1, -1).split(",");
  const numbers = numberRange.exec(source);
  if (numbers !== null) {
    const [, from = "", to = ""] = numbers;
    if (/^-?0\d/.test(from) || /^-?0\d/.test(to)) return undefined;
    return range(Number(from), Number(to))?.map(String);
  }
  const letters = letterRange.exec(source);
  if (letters === null) return undefined;
  const [, from = letters[3] ?? "", to = letters[4] ?? ""] = letters;
  return range(from.charCodeAt(0), to.charCodeAt(0))?.map((code) => String.fromCharCode(code));
}

function range(from: number, to: number): readonly number[] | undefined {
  const length = Math.abs(to - from) + 1;
  if (length > 256) return undefined;
  return Array.from({ length }, (_, at) => (from <= to ? from + at : from - at));
}

/** Whether bash could expand braces in text that the parser took for plain. */
export function hasUnclearBraces(source: string, alone: boolean): boolean {
  const text = source.replace(/\\[\s\S]/g, "_");
  if (!/[{}]/.test(text) || text === "{}") return false;
  if (!alone) return true;
  const rest = text.replace(/\{[^{},]*\}/g, (group) => (group.includes("..") ? group : ""));
  return /[{}]/.test(rest) || text.slice(text.indexOf("{")).includes(",");
}
