import type { ParsedScript, SyntaxNode } from "unbash";

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

/** How far rules cover a command, and what it uses besides the paths among its words. */
export interface CommandReach {
  /** Why only an exact rule may allow it, not a wildcard: a word is not understood, starts a program or writes. */
  readonly exactOnly?: string;
  /** Softens `exactOnly`: a wildcard whose text before its first star begins with these words may allow it too. */
  readonly wildcardHead?: string;
  /** Where present, a wildcard that reaches beyond `wildcardHead` must agree with these words. */
  readonly pinnedHead?: string;
  /** Where present, a wildcard that reaches beyond `wildcardHead` must begin with these words. */
  readonly requiredHead?: string;
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
  /**
   * Whether it may change files among its words that its paths do not say; absent where that follows from whether it is
   * understood.
   */
  readonly changesOperands?: boolean;
}

/** One simple command that could run. */
export interface ShellUnit extends CommandReach {
  readonly words: readonly ShellWord[];
  /** The words as written, without wrappers and assignments: for exact rules that keep their quotes. */
  readonly written: string;
  /** Texts that deny and ask rules are compared with: as written, unwrapped, with the base name of the command, git without global options. */
  readonly restrictTexts: readonly string[];
  /** The canonical text that allow rules are compared with; absent when only a rule for the whole tool may allow it. */
  readonly grantText?: string;
  /** It only reads: every word of it was understood by the built-in tables, and it needs no rule. */
  readonly readOnly: boolean;
  /** What it does depends on files of the directory it runs in, so that a grant holds for one directory only. */
  readonly obeysDirectory: boolean;
  /** The directories it may run in. */
  readonly directories: readonly string[];
  readonly operands: readonly PathOperand[];
  /** It removes something that is only known when it runs, and that may be a folder or several files. */
  readonly removesUnknown?: true;
  /** Words that may be a command which this one starts, from any of them on. */
  readonly started?: readonly (readonly string[])[];
  /** Why there is no `grantText`. */
  readonly reason?: string;
  /** Files that it may change for all that is known of it. */
  readonly mayChange?: readonly PathOperand[];
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
   * when no question was asked. Absent when the command is opaque.
   */
  readonly judged?: string;
  /** What the judged form leaves out or does differently, for the result. */
  readonly notes?: readonly string[];
}

/** How a word names files that a search has found. */
interface FoundFile {
  /** It is a file at or below its path. */
  readonly isBelow?: true;
  /** Its name was printed by another program: links are followed, and `split` takes spaces in a name for its end. */
  readonly printed?: "whole" | "split";
  /** One of these patterns fits the name of the file. */
  readonly names?: readonly string[];
  /** Of those, it is one that was chosen by its name or otherwise. */
  readonly isSelection?: true;
}

/** One argument of a command, as far as it is known before the command runs. */
export interface Word extends ShellWord, FoundFile {
  /** The argument itself, if it is literal: the text with the home directory filled in. */
  readonly value: string;
  /** As written. */
  readonly source: string;
  /** When it runs it may begin with a dash, be several words, or none. */
  readonly loose: boolean;
  /** It is exactly one word when it runs. */
  readonly isOne: boolean;
  /** The path it names, with `~` for the home directory; empty for one that names no file. */
  readonly path: string;
  readonly pathKnown: boolean;
  /** The word in shell syntax, with everything that is known quoted literally. */
  readonly rendered: string;
  /** It comes from the same written word as the one before it. */
  readonly continued?: true;
  /** It means further words like the one before it. */
  readonly repeated?: true;
  /** Its value is not known, but it is a whole number. */
  readonly numeric?: true;
  /** It holds the value of this variable, which comes from the environment. */
  readonly environment?: string;
  /** It is the name of a temporary file that was made just now, or nothing. */
  readonly temporary?: true;
}

/**
 * One way in which a git command uses files that its words need not name. git itself lists them, by commands that only
 * read: `list` is the answer of the first of its `tries` that works; `merge` brings what changed between two trees to a
 * third, where renamed folders may lead it elsewhere; `replay` does so for commits.
 */
export type TreeStep =
  | {
      readonly type: "list";
      readonly use: "read" | "write";
      readonly tries: readonly (readonly string[])[];
    }
  | {
      readonly type: "merge";
      /** Absent: the best common ancestor. */
      readonly base?: string;
      readonly theirs: string;
      readonly ours: string;
    }
  | { readonly type: "replay"; readonly commits: readonly string[]; readonly onto: string }
  | { readonly type: "patch"; readonly files: readonly string[]; readonly options: readonly string[] }
  | { readonly type: "pull"; readonly remote?: string }
  /** The index changes, so that what later commands take from it is not known. */
  | { readonly type: "stage" }
  | { readonly type: "unknown"; readonly reason: string };

/** How a git command reaches another repository, or starts an editor that a repository may name. */
export interface GitTransport {
  readonly verb: "exchange" | "clone" | "submodule" | "edit";
  /** Remotes or addresses that it names; none where the configuration says. */
  readonly named: readonly string[];
}

/** What a command with these arguments does, as far as its table or reader knows. */
export interface Judgement extends CommandReach {
  /** Every word was understood, and it only reads. */
  readonly readOnly: boolean;
  readonly paths: readonly UsedPath[];
  /** Where it goes before it does anything, one after the other. */
  readonly folders?: readonly Word[];
  /** It does the same in every directory. */
  readonly anywhere?: boolean;
  /** The words that are run in place of those that were given, to switch off what the tables cannot see. */
  readonly rendered?: readonly string[];
  /** The same, in a form to which paths that are to be left out can be appended. */
  readonly limited?: readonly string[];
  /** The words that are run when these names are to be left out of what is searched below a folder. */
  readonly leaveOut?: (names: readonly UnreadableName[]) => readonly string[] | undefined;
}

export interface UsedPath {
  readonly word: Word;
  readonly use: OperandUse;
  readonly below?: PathOperand["below"];
}

/** Reads the words of one command. */
export type JudgeCommand = (words: readonly Word[], place: Place) => Judgement;

export interface Place {
  /** The directory it runs in is known. */
  readonly isKnown: boolean;
  /** The folder of the repository, where rules forbid some of its paths. */
  readonly repository?: string | undefined;
  /** Filters of git that settings name. */
  readonly filters?: readonly string[] | undefined;
}

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
  /** Filters of git that settings name, which are switched off where it only reads. */
  readonly filters?: readonly string[];
  /** What rules keep from being read, for programs that search whole folders. */
  readonly unreadable?: readonly UnreadableName[];
}

/** Files and folders of a name that rules keep from being read, at any depth. */
export interface UnreadableName {
  /** It may hold `*` and `?`. */
  readonly name: string;
  /** Only what is below a folder of this name is meant. */
  readonly isFolder?: true;
}

/** The directories a command may run in: "" is that of the call. */
export type Directories = readonly string[];

/** What a variable holds that the program itself has set. */
export type Value =
  | { readonly type: "text"; readonly text: string }
  | {
      readonly type: "number";
      /** It may hold nothing yet. */
      readonly mayBeUnset?: true;
    }
  | {
      readonly type: "unknown";
      /** It may hold a file pattern that the program itself has set. */
      readonly pattern?: true;
      /** It is the name of a temporary file that was made just now, or nothing. */
      readonly temporary?: true;
    };

export type Variables = ReadonlyMap<string, Value>;

/** What the shell is like at one point of the program. */
export interface State {
  readonly directories: Directories;
  readonly variables: Variables;
  /** Where `popd` leads, the last one first; absent where that is not known. */
  readonly stack?: readonly Directories[];
}

/** The state after a command: when it succeeded, and when it failed. */
export interface Flow {
  readonly success: State;
  readonly failure: State;
}

/** A command that was walked: the state after it, and its judged text. */
export interface Step {
  readonly flow: Flow;
  readonly text: string;
}

/** What a search prints, one name each. */
export interface FoundNames {
  readonly places: readonly PathOperand[];
  /** Each name ends in NUL, so that none can be taken for several. */
  readonly isExact: boolean;
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
  /** The names that come in by a pipe, where they are known to be of files below some places. */
  readonly found?: FoundNames | undefined;
  /** It is only looked at for deny and ask rules; what is not understood in it makes nothing opaque. */
  readonly supposed?: true;
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
  /** The work that was done so far, in characters that were read or written. */
  steps: number;
}
