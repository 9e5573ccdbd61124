import type { Command, CompoundList, SyntaxNode } from "unbash";
import { isRetinueError } from "../../foundation/retinue-error.ts";
import type { GitTransport } from "./programs/git-transport.ts";
import type { TreeStep } from "./programs/tree-steps.ts";
import {
  type GlobRequest,
  type Grammar,
  initialState,
  maxSteps,
  parse,
  type Surroundings,
  type UnreadableName,
  type Walk,
} from "./walk.ts";
import { walkScript } from "./walk-script.ts";

/** One argument as rules and guards see it. */
export interface ShellWord {
  readonly text: string;
  /** The text is exactly what the program gets. */
  readonly literal: boolean;
  /** It holds a file pattern that was not expanded. */
  readonly glob: boolean;
}

/** How a command uses a path. `copy` is a destination: an existing folder there receives the sources by their names. */
export type OperandUse = "read" | "write" | "remove" | "copy";

/**
 * A path that a command uses. A leading `~/` (or `~` alone) is the home directory; a directory that is really named `~`
 * is written `./~`.
 */
export interface PathOperand {
  readonly path: string;
  readonly literal: boolean;
  /** "" is the call's own directory, else the literal target of the `cd`s before it; "unknown" after a `cd` to somewhere unknown. */
  readonly directory: string | "unknown";
  readonly use: OperandUse;
  /**
   * Everything below the path is used in the same way; `visible` leaves out names that begin with a dot, `follow` also
   * goes where links below it lead.
   */
  readonly below?: "all" | "visible" | "follow";
  /** Of what is below it, some files were chosen by their names or otherwise. */
  readonly isSelection?: true;
  /** Of what is below it, only files whose names fit one of these patterns are used. */
  readonly names?: readonly string[];
  /** A name below it that holds a blank or a quote is taken for several. */
  readonly isSplit?: true;
  /** Of what is below it, these are left out by the command itself. */
  readonly leavesOut?: readonly UnreadableName[];
}

/** One simple command that could run. */
export interface ShellUnit {
  readonly words: readonly ShellWord[];
  /** The words as written, without wrappers and assignments: for exact rules that keep their quotes. */
  readonly written: string;
  /** Texts that deny and ask rules are compared with: as written, unwrapped, with the base name of the command, git without global options. */
  readonly restrictTexts: readonly string[];
  /** The canonical text that allow rules are compared with; absent when only a rule for the whole tool may allow it. */
  readonly grantText?: string;
  /** Why only an exact rule may allow it, not a wildcard. */
  readonly exactOnly?: string;
  /** Softens `exactOnly`: a wildcard whose text before its first star begins with these words may allow it too. */
  readonly wildcardHead?: string;
  /** Where present, a wildcard that reaches beyond `wildcardHead` must agree with these words. */
  readonly pinnedHead?: string;
  /** Where present, a wildcard that reaches beyond `wildcardHead` must begin with these words. */
  readonly requiredHead?: string;
  /** It only reads: every word of it was understood by the built-in tables, and it needs no rule. */
  readonly readOnly: boolean;
  /** What it does depends on files of the directory it runs in, so that a grant holds for one directory only. */
  readonly obeysDirectory: boolean;
  /** The directories it may run in. */
  readonly directories: readonly string[];
  readonly operands: readonly PathOperand[];
  /** It removes something that is only known when it runs, and that may be a folder or several files. */
  readonly removesUnknown?: true;
  /** URLs among its words; a rule that names a URL covers one. */
  readonly urls?: UrlUse;
  /** It shows what version control holds, under any path: the paths that rules deny are left out of what it shows. */
  readonly showsTracked?: true;
  /**
   * Its use of the files among its words is not known: `any` programs may also obey or write what is outside the
   * working directories; `code` is run by an interpreter, which may do anything in any case; `tool` is a known tool that
   * another program starts.
   */
  readonly namesFiles?: "any" | "code" | "tool";
  /** How git uses files that its words need not name. */
  readonly tree?: readonly TreeStep[];
  /** How git reaches other repositories, or an editor that this one names. */
  readonly transport?: GitTransport;
  /** Words that may be a command which this one starts, from any of them on. */
  readonly started?: readonly (readonly string[])[];
  /** Why there is no `grantText`. */
  readonly reason?: string;
}

export interface UrlUse {
  readonly urls: readonly string[];
  /** An option that could lead the request elsewhere, or one that is not known. */
  readonly steering?: string;
}

export interface ShellAnalysis {
  readonly units: readonly ShellUnit[];
  /** Redirections, as operands. */
  readonly redirects: readonly PathOperand[];
  /** Folders whose names file patterns show, as operands. */
  readonly listed: readonly PathOperand[];
  /** Not fully understood: never allowed by itself; asked even in bypass mode when scoped deny rules exist. */
  readonly opaque?: string;
  /** The call's text as one exact rule would have to say it. */
  readonly exactText: string;
  /**
   * The command as it was judged: the same program with every word that is known quoted literally. This is what runs
   * when no one was asked. Absent when the command is opaque.
   */
  readonly judged?: string;
  /** What the judged form leaves out or does differently, for the result. */
  readonly notes?: readonly string[];
}

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
  if (node.type === "Statement" && hasEmptyCommand(source, node.end, inCase))
    return "there is no command between two separators";
  // A line may break after `&&` and `||` only; in backquotes, positions do not show where.
  if (node.type === "TestCommand" && !/^\[\[[^\n]*\]\]$/.test(source.slice(node.pos, node.end)))
    return "a line breaks inside of [[ ]]";
  return undefined;
}

/** `a; ; b` and `a & ; b`; `;;` ends a part of `case`. */
function hasEmptyCommand(source: string, end: number, inCase: boolean): boolean {
  return isAt(emptyCommand, source, end) && !(inCase && isAt(endOfCase, source, end));
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
