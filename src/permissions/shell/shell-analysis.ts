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
  /** It only reads: every word of it was understood by the built-in tables, and it needs no rule. */
  readonly readOnly: boolean;
  /** What it does depends on files of the directory it runs in, so that a grant holds for one directory only. */
  readonly obeysDirectory: boolean;
  /** The directories it may run in. */
  readonly directories: readonly string[];
  readonly operands: readonly PathOperand[];
  /** URLs among its words; a rule that names a URL covers one. */
  readonly urls?: UrlUse;
  /** It shows what version control holds, under any path: the paths that rules deny are left out of what it shows. */
  readonly showsTracked?: true;
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
