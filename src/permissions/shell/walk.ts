import type { ParsedScript, SyntaxNode } from "unbash";
import type { PathOperand, ShellUnit } from "./shell-analysis.ts";
import type { Flow, State } from "./state.ts";

/** The parts of the parser that the walk needs. */
export interface Grammar {
  readonly parse: (source: string) => ParsedScript;
  readonly forEachChild: (node: SyntaxNode, visit: (child: SyntaxNode) => void) => void;
}

/** A file pattern and the directory in which it is. */
export interface GlobRequest {
  readonly pattern: string;
  readonly directory: string;
}

/** What surrounds the command as a whole. */
export interface Surroundings {
  readonly home: string;
  /** The files that a pattern matches; undefined where that was not looked up or is too much. */
  readonly matches: (request: GlobRequest) => readonly string[] | "too-many" | undefined;
  /** Paths, as git writes them, that rules deny and that git leaves out where it can. */
  readonly exclusions?: readonly string[];
  /** The folder of the repository they belong to. */
  readonly repository?: string;
}

/** What one walk over a command has found so far. */
export interface Walk {
  readonly grammar: Grammar;
  readonly surroundings: Surroundings;
  /** Walks a script that is in a word or in a text. */
  readonly walkScript: (walk: Walk, script: ParsedScript, scene: Scene) => Step;
  readonly units: ShellUnit[];
  readonly redirects: PathOperand[];
  readonly listed: PathOperand[];
  readonly globs: GlobRequest[];
  readonly notes: Set<string>;
  opaque: string | undefined;
  /** Commands that were rendered, each iteration of a loop for itself. */
  size: number;
}

/** What surrounds one command. */
export interface Scene {
  readonly state: State;
  /** `sh` reads some of bash's syntax differently. */
  readonly dialect: "bash" | "sh";
  /** Texts of the commands around this one. */
  readonly outer: readonly string[];
  /** Why no rule may allow what runs here: an environment that changes what programs do. */
  readonly reason?: string | undefined;
  readonly depth: number;
  /** Another program starts what runs here, with the words as they are written. */
  readonly asWritten?: true;
  /** It is in a loop that was not seen to change the directory. */
  readonly settled?: boolean;
  /** It is in `$( )`, backticks or `<( )`. */
  readonly substituted?: true;
  /** It is only looked at for deny and ask rules; what is not understood in it makes nothing opaque. */
  readonly supposed?: true;
}

/** A command that was walked: the state after it, and its judged text. */
export interface Step {
  readonly flow: Flow;
  readonly text: string;
}

export function markOpaque(walk: Walk, reason: string): void {
  walk.opaque ??= reason;
}

/** Walks every script below a node that is not understood, so that deny rules see its commands. */
export function visitNested(walk: Walk, node: SyntaxNode, scene: Scene): void {
  walk.grammar.forEachChild(node, (child) => {
    const isScript =
      child.type === "CommandExpansion" ||
      child.type === "ProcessSubstitution" ||
      child.type === "ArithmeticCommandExpansion";
    if (!isScript) visitNested(walk, child, scene);
    else if (child.script !== undefined) walk.walkScript(walk, child.script, { ...scene, substituted: true });
  });
}
