/** A function and how many lines it has, from its first line to the brace that closes it. */
export interface FunctionLength {
  readonly name: string;
  readonly line: number;
  readonly lines: number;
}

/** Finds functions by their indentation, which the formatter guarantees: the closing brace is below the first word. */
export function readFunctions(source: string): FunctionLength[] {
  const lines = source.split("\n");
  return lines.flatMap((text, at) => {
    const name = nameOf(text);
    const indent = /^\s*/.exec(text)?.[0] ?? "";
    if (name === undefined || (text.endsWith("(") && !hasBody(lines.slice(at + 1), indent))) return [];
    const end = lines.findIndex((line, index) => index > at && closes(line, indent));
    return end === -1 ? [] : [{ name, line: at + 1, lines: end - at + 1 }];
  });
}

const keywords = new Set(["if", "for", "while", "switch", "catch", "with", "return", "function"]);

/** The name of the function that begins in a line, if its body does not end there. */
function nameOf(line: string): string | undefined {
  if (!/[{(]$/.test(line)) return undefined;
  const declared = /^\s*(?:export )?(?:default )?(?:async )?function\*? ?(\w*)/.exec(line);
  if (declared !== null) return declared[1];
  const arrow = /^\s*(?:export )?(?:const |let )?(?:readonly )?(\w*).*=> \{$/.exec(line);
  if (arrow !== null) return arrow[1];
  const assigned = /^\s*(?:export )?const (\w+)(?:: .*)? = (?:async )?(?:<.*>)?\($/.exec(line);
  if (assigned !== null) return assigned[1];
  const method = /^\s*(?:static |readonly )?(?:async )?\*?(?:get |set )?([\w#]+|\[[\w.]+\])(?:<.*>)?\(/.exec(
    line,
  );
  const name = method?.[1];
  return name === undefined || keywords.has(name) || !/\) ?(?::.*)?\{$|\($/.test(line) ? undefined : name;
}

/** Whether the parameters that begin in the line before are followed by a body, and not by the end of a signature. */
function hasBody(rest: readonly string[], indent: string): boolean {
  return rest.find((line) => line.startsWith(`${indent})`))?.endsWith("{") === true;
}

/** A line like `} {` ends a type, and the body follows. */
function closes(line: string, indent: string): boolean {
  return line.startsWith(`${indent}}`) && !line.endsWith("{");
}
