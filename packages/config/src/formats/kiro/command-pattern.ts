/** An anchored regular expression for the commands of a pattern such as `git diff *`. */
export function commandsOfPattern(pattern: string): string {
  const text = pattern.replace(/:\*$/, " *");
  return `^${text.replace(/[\\^$.|?+()[\]{}]/g, "\\$&").replaceAll("*", ".*")}$`;
}

/** The pattern of an expression that says nothing else; undefined for one that a pattern cannot say. */
export function patternOfCommands(expression: string): string | undefined {
  const inner = expression.replace(/^\^/, "").replace(/\$$/, "");
  const hidden = inner.replaceAll(".*", "\u0000");
  if (/(?<!\\)(?:\\\\)*[.^$|?+()[\]{}*]/.test(hidden)) return undefined;
  const plain = hidden.replace(/\\(.)/g, (whole, character: string) =>
    /\w/.test(character) ? whole : character,
  );
  return /\\\w/.test(plain) || plain.includes("*") ? undefined : plain.replaceAll("\u0000", "*");
}
