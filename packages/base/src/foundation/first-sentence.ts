/** Up to the first full stop that ends a sentence of some length, so that "e.g." does not; examples are left out. */
export function firstSentence(text: string): string {
  const prose = text.split(/\s*(?:<example>|\bExamples?:)/i)[0] ?? "";
  return (/^[\s\S]{24,}?[.!?\u3002](?=\s|$)/u.exec(prose)?.[0] ?? prose).trim();
}

/** The text with a full stop, where others wrote it and another sentence follows. */
export function endSentence(text: string): string {
  const words = text.trimEnd();
  return words === "" || /[.!?\u2026]["')\]]?$/.test(words) ? words : `${words}.`;
}
