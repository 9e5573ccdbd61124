export interface LimitedText {
  readonly text: string;
  /** How many characters were left out; 0 when the text is whole. */
  readonly omitted: number;
}

/** At most `limit` characters of a text besides the note in the middle: its beginning and its end. */
export function limitText(text: string, limit: number, more = ""): LimitedText {
  if (text.length <= limit) return { text, omitted: 0 };
  const head = takeStart(text, Math.ceil(limit * headShare));
  const tail = takeEnd(text, limit - head.length);
  const omitted = text.length - head.length - tail.length;
  return { text: `${head}\n\n[… ${omitted} characters left out${more} …]\n\n${tail}`, omitted };
}

/** The first characters of a text, never half of a surrogate pair. */
export function takeStart(text: string, length: number): string {
  if (length >= text.length) return text;
  const end = Math.max(0, length);
  return text.slice(0, splitsPair(text, end) ? end - 1 : end);
}

/** The last characters of a text, never half of a surrogate pair. */
export function takeEnd(text: string, length: number): string {
  if (length >= text.length) return text;
  const start = text.length - Math.max(0, length);
  return text.slice(splitsPair(text, start) ? start + 1 : start);
}

/** The beginning says what a text is, so it gets the larger part. */
const headShare = 0.6;

function splitsPair(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1);
  const after = text.charCodeAt(at);
  return before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff;
}
