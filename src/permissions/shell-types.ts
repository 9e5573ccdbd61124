/** A word of a command: its text after unquoting, and whether that is all it can be. */
export interface ShellWord {
  readonly text: string;
  readonly literal: boolean;
  readonly glob: boolean;
}

/**
 * A path that a command reads or writes. A leading `~/` (or `~` alone) is the home directory; a directory that is
 * really named `~` is written `./~`.
 */
export interface PathOperand {
  readonly path: string;
  readonly literal: boolean;
  /** "" is the call's own directory, else the literal target of the `cd`s before it; "unknown" after a `cd` to somewhere unknown. */
  readonly directory: string | "unknown";
  readonly use: "read" | "write" | "remove";
  /** It reads everything below the path too. */
  readonly below?: true;
}

/** One simple command that could run. */
export interface ShellUnit {
  readonly words: readonly ShellWord[];
  /** The words as they stand in the source, without wrappers and assignments: for exact rules that keep their quotes. */
  readonly written: string;
  /** Texts that deny and ask rules are compared with: as written, unwrapped, with the base name of the command, git without global options. */
  readonly restrictTexts: readonly string[];
  /** The canonical text that allow rules are compared with; absent when only a rule for the whole tool may allow it. */
  readonly grantText?: string;
  /** Why only an exact rule may allow it, not a wildcard. */
  readonly exactOnly?: string;
  /** Softens `exactOnly`: a wildcard whose text before its first star begins with these words may allow it too. */
  readonly wildcardHead?: string;
  /** It only reads, by the built-in set with these arguments, and needs no rule. */
  readonly readOnly: boolean;
  readonly operands: readonly PathOperand[];
  /** Why there is no `grantText`. */
  readonly because?: string;
}

export interface ShellAnalysis {
  readonly units: readonly ShellUnit[];
  /** Redirections, as operands. */
  readonly redirects: readonly PathOperand[];
  /** Not fully understood: never allowed by itself; asked even in bypass mode when scoped deny rules exist. */
  readonly opaque?: string;
  /** The call's text as one exact rule would have to say it. */
  readonly exactText: string;
}
