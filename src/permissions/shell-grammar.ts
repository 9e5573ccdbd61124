import type { ShellAnalysis } from "./shell-types.ts";
import { walkScript } from "./shell-walk.ts";
import type { Grammar, Walk } from "./shell-walk-state.ts";

/** Longer commands are shown to a person. */
const longestCommand = 10_000;

const plain = /^[\n\t\x20-\x7e]*$/;
/** Control characters, and characters that show nothing or reorder what is shown. */
const hidden = /(?!\n|\t|\u200d|\ufe0f)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
/** A joiner and a variant sign belong to a picture before them. */
const stray = /(?<!\p{Extended_Pictographic}\ufe0f?|\p{Emoji_Modifier})(?:\u200d|\ufe0f)/u;

/** Understands a Bash command by its grammar; the same text always gives the same analysis. */
export function analyseWith(grammar: Grammar, command: string): ShellAnalysis {
  const exactText = command.trim();
  try {
    const first = walkOnce(grammar, command, false);
    const walk = first.moved ? walkOnce(grammar, command, true) : first;
    const opaque = textReason(command) ?? walk.opaque ?? evaluatedReason(walk);
    const { units, redirects } = walk;
    return { units, redirects, exactText, ...(opaque !== undefined && { opaque }) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { units: [], redirects: [], exactText, opaque: `it could not be analysed: ${reason}` };
  }
}

function walkOnce(grammar: Grammar, command: string, loopsMove: boolean): Walk {
  const walk: Walk = {
    grammar,
    walkScript,
    units: [],
    redirects: [],
    loopsMove,
    moved: false,
    opaque: undefined,
    evaluated: new Set(),
    texts: new Set(),
  };
  walkScript(walk, grammar.parse(command), { directories: [""], dialect: "bash", outer: [], depth: 0 });
  return walk;
}

function textReason(command: string): string | undefined {
  if (command.length > longestCommand) return `it has more than ${longestCommand} characters`;
  if (plain.test(command)) return undefined;
  return hidden.test(command) || stray.test(command)
    ? "it has control characters or invisible ones"
    : undefined;
}

function evaluatedReason({ evaluated, texts }: Walk): string | undefined {
  for (const name of evaluated) if (texts.has(name)) return `the text of the variable ${name} is evaluated`;
  return undefined;
}
