import { estimateTextTokens } from "../conversation/estimate-request-tokens.ts";

/** The text, or its beginning and end with a note between them, at about so many tokens. */
export function shortenText(text: string, tokens: number): string {
  const whole = estimateTextTokens(text);
  if (whole <= tokens) return text;
  const room = Math.max(0, tokens - noteTokens);
  // Tokens are not spread evenly over a text, so the first guess is made smaller until it fits.
  for (let length = Math.floor((text.length * room) / whole); length > 0; length = Math.floor(length * 0.8)) {
    const head = cleanEnd(text.slice(0, Math.ceil(length * headShare)));
    const tail = cleanStart(text.slice(text.length - Math.floor(length * (1 - headShare))));
    const cut = `${head}\n… (shortened) …\n${tail}`;
    if (estimateTextTokens(cut) <= tokens) return cut;
  }
  return "";
}

/** One line of at most so many characters. */
export function briefLine(text: string, characters: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= characters ? line : `${cleanEnd(line.slice(0, characters - 1))}…`;
}

const noteTokens = 8;
const headShare = 0.6;

/** Does not part the two halves of one character. */
function cleanEnd(text: string): string {
  return /[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text;
}

function cleanStart(text: string): string {
  return /^[\uDC00-\uDFFF]/.test(text) ? text.slice(1) : text;
}
