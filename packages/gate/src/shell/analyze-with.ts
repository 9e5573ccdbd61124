import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Command, CompoundList, SyntaxNode } from "unbash";
import type { GlobRequest, Grammar, ShellAnalysis, Surroundings, Walk } from "./model.ts";
import { initialState, maxSteps, parse } from "./walk.ts";
import { walkScript } from "./walk-script.ts";

/** Longer commands are shown to a person; of those, rules that restrict look at the beginning. */
const maxLength = 10_000;

const plain = /^[\n\t\x20-\x7e]*$/;
/** Control characters, and characters that show nothing or reorder what is shown. */
const hidden = /(?!\n|\t|\u200d|\ufe0f)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
/** A joiner and a variant sign belong to a picture before them. */
const stray = /(?<!\p{Extended_Pictographic}\ufe0f?|\p{Emoji_Modifier})(?:\u200d|\ufe0f)/u;

/** An analysis, and the file patterns that have to be looked up before it is complete. */
export interface AnalysisDraft {
  readonly analysis: ShellAnalysis;
  readonly globs: readonly GlobRequest[];
  /** The work that it took, in characters that were read or written. */
  readonly steps: number;
}

/** Understands a Bash command by its grammar; the same text in the same surroundings gives the same analysis. */
export function analyzeWith(grammar: Grammar, command: string, surroundings: Surroundings): AnalysisDraft {
  const exactText = command.trim();
  const walk: Walk = {
    grammar: strict(grammar),
    surroundings,
    walkScript,
    units: [],
    redirects: [],
    listed: [],
    globs: [],
    notes: new Set(),
    opaque: textReason(command),
    size: 0,
    steps: 0,
  };
  let text = "";
  try {
    const scene = { state: initialState, dialect: "bash", outer: [], depth: 0 } as const;
    text = walkScript(walk, parse(walk, command.slice(0, maxLength)), scene).text;
  } catch (error) {
    // What was seen until then still counts for rules that restrict.
    const reason = error instanceof Error ? error.message : String(error);
    walk.opaque ??= isRetinueError(error) ? reason : `it could not be analyzed: ${reason}`;
  }
  const { units, redirects, listed, opaque } = walk;
  const notes = [...walk.notes];
  const understood = opaque === undefined ? { judged: text, ...(notes.length > 0 && { notes }) } : { opaque };
  // Files that a pattern matches matter only where the rest is understood.
  const globs = walk.steps > maxSteps ? [] : walk.globs;
  return { analysis: { units, redirects, listed, exactText, ...understood }, globs, steps: walk.steps };
}

function textReason(command: string): string | undefined {
  if (command.length > maxLength) return `it has more than ${maxLength} characters`;
  if (plain.test(command)) return undefined;
  return hidden.test(command) || stray.test(command)
    ? "it has control characters or invisible ones"
    : undefined;
}

/** Finds what the parser accepts and bash refuses, or reads differently. */
function strict(grammar: Grammar): Grammar {
  const { forEachChild } = grammar;
  return {
    forEachChild,
    parse(source) {
      const script = grammar.parse(source);
      let message: string | undefined;
      const visit = (node: SyntaxNode, inCase: boolean): void => {
        message ??= refusedByBash(node, source, inCase);
        const isCase = inCase || node.type === "CaseItem";
        if (message === undefined) forEachChild(node, (child) => visit(child, isCase));
      };
      forEachChild(script, (child) => visit(child, false));
      return message === undefined ? script : { ...script, errors: [{ message, pos: 0 }] };
    },
  };
}

function refusedByBash(node: SyntaxNode, source: string, inCase: boolean): string | undefined {
  if (node.type === "Command" && hasStrayParenthesis(node, source))
    return "a parenthesis is not expected there";
  // Bash reads `((` as arithmetic first, and does not always look again.
  if (node.type === "Subshell" && node.body.commands[0]?.pos === node.pos + 1 && isSubshell(node.body))
    return "arithmetic and a subshell look alike";
  // `a; ; b` and `a & ; b`; `;;` ends a part of `case`.
  if (
    node.type === "Statement" &&
    isAt(emptyCommand, source, node.end) &&
    !(inCase && isAt(endOfCase, source, node.end))
  )
    return "there is no command between two separators";
  // A line may break after `&&` and `||` only; in backquotes, positions do not show where.
  if (node.type === "TestCommand" && !/^\[\[[^\n]*\]\]$/.test(source.slice(node.pos, node.end)))
    return "a line breaks inside of [[ ]]";
  return undefined;
}

/** Lines may be continued anywhere in them. */
const emptyCommand = /(?:[ \t]|\\\n)*[;&](?:\s|\\\n)*;(?!(?:\\\n)*[;&])/y;
const endOfCase = /(?:[ \t]|\\\n)*;(?:\\\n)*;/y;

function isAt(pattern: RegExp, source: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(source);
}

function isSubshell({ commands }: CompoundList): boolean {
  let first: SyntaxNode | undefined = commands[0];
  while (first !== undefined && first.type !== "Subshell") {
    if (first.type === "Statement" || first.type === "Redirected") first = first.command;
    else if (first.type === "AndOr" || first.type === "Pipeline") first = first.commands[0];
    else return false;
  }
  return first !== undefined;
}

function hasStrayParenthesis({ name, args, end }: Command, source: string): boolean {
  if (name === undefined) return false;
  if (/^(?:[ \t]|\\\n)*\(/.test(source.slice(end))) return true;
  const words = [name, ...args];
  return words.some((word, at) => {
    const before = words[at - 1];
    // A script inside a word counts its positions by itself.
    if (before === undefined || source.slice(before.pos, before.end) !== before.text) return false;
    return source.slice(before.end, word.pos).includes("(");
  });
}
