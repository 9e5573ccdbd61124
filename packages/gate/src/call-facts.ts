import { createHash } from "node:crypto";
import type { ShellAnalysis } from "./shell/model.ts";
import { readWebTarget, type WebTarget } from "./web-target.ts";

export type PathUse = "read" | "write" | "remove";

/** The same place in another working tree of the repository that a path is in. */
export interface PathCopy {
  /** The root of that working tree. */
  readonly tree: string;
  readonly path: string;
  /** It is the repository's main working tree. */
  readonly isMain: boolean;
}

/** A path that a call touches. */
export interface PathFact {
  /** Everything the path is known as: without `..`, and with links followed. A grant needs all, a restriction one. */
  readonly forms: readonly string[];
  /** What the path goes through before each `..` in it. */
  readonly passed?: readonly string[];
  /** What rules that restrict say about one working tree, they say about the others too. */
  readonly copies?: readonly PathCopy[];
  readonly use: PathUse;
  /** Why the path can only be guessed; the forms are then guesses. */
  readonly unknown?: string;
  /** Another command of the call makes a link at or above it, which may lead to anything that is protected. */
  readonly isBehindLink?: boolean;
  /** It is named among the words of a program whose use of it is not known: as the value of an option, or otherwise. */
  readonly isGuess?: "option" | "operand";
  /** git changes files that it cannot list before; a rule that names the whole command covers them. */
  readonly isUnlisted?: boolean;
  /** The file has other names somewhere that cannot be listed. */
  readonly hasOtherNames?: boolean;
  /** Only some files below it are used, which were chosen by their names or otherwise. */
  readonly isSelection?: boolean;
  /** It is part of what git would take for a repository. */
  readonly isRepositoryPart?: boolean;
  /** What is written is a folder. */
  readonly isFolder?: boolean;
  /** The file that is written may be executed, and names its interpreter. */
  readonly isProgram?: boolean;
  /** Git runs it, or what is below it, as a hook. */
  readonly isHook?: boolean;
}

/** What one simple command of a shell call touches; is beside the analysis's unit of the same index. */
export interface UnitFacts {
  readonly paths: readonly PathFact[];
  /** Files that rules keep from being edited, or that are not known, and that it may change for all that is known of it. */
  readonly mayChange?: readonly PathFact[];
  /** More texts for rules that restrict: the command under the real name of its program. */
  readonly otherTexts: readonly string[];
  /** The program is named by a path where nothing is yet. */
  readonly programUnknown?: true;
  /** Why no rule for a command covers it where it runs: an unknown folder, or one outside the working directories. */
  readonly elsewhere?: string;
  /** The folder it runs in, where that is not the session's own. */
  readonly movedTo?: string;
  /** That folder is a plain one of the session's own repository. */
  readonly isPartOfProject?: true;
  /** Why the repository that git would find is not the session's own. */
  readonly repository?: string;
  /** Why git is asked about although it only reads: a setting of the repository. */
  readonly configuration?: string;
  /** Why git is asked about whatever rules allow: it would run what a repository on this machine names. */
  readonly transport?: string;
  /** Why it is asked about although it only reads: the program of its name is not known to be that program. */
  readonly program?: string;
}

export interface ShellFacts {
  readonly analysis: ShellAnalysis;
  readonly units: readonly UnitFacts[];
  readonly redirects: readonly PathFact[];
  /** Folders whose names file patterns show. */
  readonly listed?: readonly PathFact[];
  /** Rules forbid reading some path that version control may hold. */
  readonly rulesOnTracked?: true;
}

/** What a call would touch, found out before anything is decided. */
export interface CallFacts {
  /** Why the input cannot be meant. */
  readonly invalid?: string;
  readonly paths: readonly PathFact[];
  readonly shell?: ShellFacts;
  readonly web?: WebTarget;
  readonly mcp?: McpIdentity;
  /** The type of agent that a spawn would run, also where it resumes one. */
  readonly agentType?: string;
  /** Other spellings of the home directory, links followed. */
  readonly otherHomes?: readonly string[];
}

/** One call, described without the tool itself. */
export interface PermissionRequest {
  readonly tool: string;
  readonly effect: string;
  /** Every form of the paths it touches. */
  readonly paths: readonly string[];
  readonly command?: string;
  readonly host?: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Absent where nothing was looked up; the call is then judged by its texts alone. */
  readonly facts?: CallFacts;
}

/** A call whose facts are known, as everything that decides about it reads them. */
export interface KnownCall extends PermissionRequest {
  readonly facts: CallFacts;
  /** By its name it is a tool of an MCP server. */
  readonly isMcp: boolean;
}

export function withFacts(request: PermissionRequest): KnownCall {
  return { ...request, facts: factsOf(request), isMcp: isMcpTool(request.tool) };
}

/** The facts of a request, or what is known without looking anything up: a command is then not understood. */
export function factsOf(request: PermissionRequest): CallFacts {
  if (request.facts !== undefined) return request.facts;
  const use: PathUse = request.effect === "edit" ? "write" : "read";
  return {
    paths: request.paths.map((path) => ({ forms: [path], use })),
    web: request.host === undefined ? undefined : readWebTarget(`https://${request.host}/`),
    shell: request.command === undefined ? undefined : notLookedUp(request.command),
  };
}

function notLookedUp(command: string): ShellFacts {
  const opaque = "the command was not analyzed";
  return {
    analysis: { units: [], redirects: [], listed: [], opaque, exactText: command.trim() },
    units: [],
    redirects: [],
  };
}

/** Every path of a call, those of its commands and redirections too. */
export function touchedPaths({ paths, shell }: CallFacts): readonly PathFact[] {
  return shell === undefined
    ? paths
    : [...paths, ...shell.units.flatMap((unit) => unit.paths), ...shell.redirects];
}

/** Writing there reaches no file. */
export function isDevice({ forms: [lexical] }: PathFact): boolean {
  return lexical !== undefined && /^\/dev\/(?:null|stdout|stderr|stdin|fd\/[012])$/.test(lexical);
}

/** Whether no command of a shell call does more than read, and nothing it names is written. */
export function onlyReads({ analysis, units, redirects }: ShellFacts): boolean {
  const paths = [...units.flatMap((unit) => unit.paths), ...redirects];
  return (
    analysis.opaque === undefined &&
    analysis.units.every(({ readOnly }) => readOnly) &&
    paths.every((path) => path.use === "read" || isDevice(path))
  );
}

/** Which tool of which server a call means. The pair counts, never the joined name. */
export interface McpIdentity {
  readonly server: string;
  readonly tool: string;
  /** The tool's definition is not the one that was approved. */
  readonly isChanged?: boolean;
}

/** A server's part of tool names. Where the name itself holds no `__`, neither does this, so that it ends at the first. */
export function mcpServerPart(server: string): string {
  const plain = spell(server);
  if (plain === server) return server;
  const tidy = plain.replace(/_{2,}/g, "_").replace(/^_|_$/g, "");
  return tidy === "" ? `server_${createHash("sha256").update(server).digest("hex").slice(0, 8)}` : tidy;
}

export function mcpToolPart(tool: string): string {
  return spell(tool);
}

/** A tool as a rule names it, spelled as tools are; its stars stay. */
export function mcpToolPattern(pattern: string): string {
  return pattern.split("*").map(spell).join("*");
}

function spell(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]/gu, "_");
}

export function isMcpTool(tool: string): boolean {
  return tool.startsWith("mcp__");
}

/** Every pair that `mcp__server__tool` can mean; more than one where underscores leave it open. */
export function readMcpName(name: string): readonly McpIdentity[] {
  const text = name.slice("mcp__".length);
  const readings: McpIdentity[] = [];
  for (let at = text.indexOf("__"); at !== -1; at = text.indexOf("__", at + 1)) {
    const server = text.slice(0, at);
    const tool = text.slice(at + 2);
    if (server !== "" && tool !== "") readings.push({ server, tool });
  }
  return readings;
}
