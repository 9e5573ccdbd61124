/** The text with a full stop, where others wrote it and another sentence follows. */
export function endSentence(text: string): string {
  const words = text.trimEnd();
  return words === "" || /[.!?\u2026]["')\]]?$/.test(words) ? words : `${words}.`;
}
