import type { ParsedScript, SyntaxNode } from "unbash";
import type { Directories, Flow } from "./shell-directory.ts";
import type { PathOperand, ShellUnit } from "./shell-types.ts";

/** The parts of the parser that the walk needs. */
export interface Grammar {
  readonly parse: (source: string) => ParsedScript;
  readonly forEachChild: (node: SyntaxNode, visit: (child: SyntaxNode) => void) => void;
}

/** What one walk over a command has found so far. */
export interface Walk {
  readonly grammar: Grammar;
  /** Walks a script that stands in a word or in a text. */
  readonly walkScript: (walk: Walk, script: ParsedScript, scene: Scene) => Flow;
  readonly units: ShellUnit[];
  readonly redirects: PathOperand[];
  /** Every loop body may start in an unknown directory. */
  readonly loopsMove: boolean;
  /** A loop left its body in another directory than it entered it. */
  moved: boolean;
  opaque: string | undefined;
  /** Variables that an arithmetic expression evaluates, and those whose value is not plainly a number. */
  readonly evaluated: Set<string>;
  readonly texts: Set<string>;
}

/** What surrounds a command. */
export interface Scene {
  readonly directories: Directories;
  /** `sh` reads some of bash's syntax differently. */
  readonly dialect: "bash" | "sh";
  /** Texts of the commands around this one. */
  readonly outer: readonly string[];
  /** Why no rule may allow what runs here: an environment that changes what programs do. */
  readonly because?: string | undefined;
  readonly depth: number;
  /** It stands in `$( )`, backticks or `<( )`. */
  readonly substituted?: true;
}

export function markOpaque(walk: Walk, reason: string): void {
  walk.opaque ??= reason;
}
