/** Splits what was given to a skill into words, as a shell does: quotes group, a backslash takes the next character as it is. */
export function splitArguments(text: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === "\\" && quote !== "'" && at + 1 < text.length) {
      at += 1;
      word = (word ?? "") + text.charAt(at);
    } else if (quote !== "") {
      if (character === quote) quote = "";
      else word = (word ?? "") + character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= "";
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? "") + character;
    }
  }
  // A quote that is never closed was meant as an apostrophe.
  if (quote !== "") return text.trim().split(/\s+/);
  return word === undefined ? words : [...words, word];
}
