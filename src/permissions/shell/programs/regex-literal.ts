/**
 * Where a regular expression between delimiters ends; undefined for one whose end programs may see in different places.
 * Some look for the delimiter between brackets too, others do not, and they differ about backslashes there: brackets
 * must be closed, and hold neither the bare delimiter nor a backslash before a bracket or another backslash.
 */
export function regexEnd(text: string, from: number, delimiter: string): number | undefined {
  const bracket = brackets.get(delimiter);
  if (bracket === undefined) return undefined;
  for (let at = from; at < text.length; at += 1) {
    const sign = text[at];
    if (sign === delimiter) return at;
    if (sign === "\n" || hidesNext(text, at)) return undefined;
    if (sign === "\\") {
      at += 1;
      if (text[at] === "\n") return undefined;
    } else if (sign === "[") {
      bracket.lastIndex = at;
      if (!bracket.test(text)) return undefined;
      at = bracket.lastIndex - 1;
    }
  }
  return undefined;
}

/**
 * Whether a character that some encodings write with several bytes is before a sign that could be the last of those
 * bytes, and would then lose its meaning.
 */
export function hidesNext(text: string, at: number): boolean {
  return text.charCodeAt(at) > 127 && /[@[\\\]^_`{|}~]/.test(text[at + 1] ?? "");
}

/** Characters that may delimit a regular expression. */
const delimiters = "/|,#:@!%_";

const brackets: ReadonlyMap<string, RegExp> = new Map(
  [...delimiters].map((delimiter) => {
    const inside = `(?:[^[\\]\\\\\\n\\u0080-\\uffff${delimiter}]|[\\u0080-\\uffff](?![@[\\\\\\]^_\`{|}~])|\\[:[a-z]+:\\]|\\\\[^[\\]\\\\\\n])`;
    return [delimiter, new RegExp(`\\[\\^?(?:\\]${inside}*|(?!\\^)${inside}+)\\]`, "y")];
  }),
);
