import { createHash } from "node:crypto";
import type { PermissionPolicy, PolicyRule } from "./permission-policy.ts";
import { protectionOf } from "./protection-of.ts";
import type { ShellAnalysis, ShellUnit } from "./shell/shell-analysis.ts";
import { readWebTarget, type WebTarget } from "./web-target.ts";

export type PathUse = "read" | "write" | "remove";

/** A path that a call touches. */
export interface PathFact {
  /** Everything the path is known as: without `..`, and with links followed. A grant needs all, a restriction one. */
  readonly forms: readonly string[];
  readonly use: PathUse;
  /** Why the path can only be guessed; the forms are then guesses. */
  readonly unknown?: string;
  /** The file has other names somewhere that cannot be listed. */
  readonly hasOtherNames?: boolean;
  /** It is part of what git would take for a repository. */
  readonly isRepositoryPart?: boolean;
}

/** What one simple command of a shell call touches; is beside the analysis's unit of the same index. */
export interface UnitFacts {
  readonly paths: readonly PathFact[];
  /** More texts for rules that restrict: the command under the real name of its program. */
  readonly otherTexts: readonly string[];
  /** The program is named by a path where nothing is yet. */
  readonly programUnknown?: true;
  /** Why no rule for a command covers it where it runs: an unknown folder, or one outside the working directories. */
  readonly elsewhere?: string;
  /** The folder it runs in, where that is not the session's own. */
  readonly movedTo?: string;
  /** Why the repository that git would find is not the session's own. */
  readonly repository?: string;
  /** Why git is asked about although it only reads: a setting of the repository. */
  readonly configuration?: string;
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

/** The facts of a request, or what can be said without looking anything up: a command is then not understood. */
export function factsOf(request: PermissionRequest): CallFacts {
  if (request.facts !== undefined) return request.facts;
  const use: PathUse = request.effect === "edit" ? "write" : "read";
  return {
    paths: request.paths.map((path) => ({ forms: [path], use })),
    ...(request.host === undefined ? {} : { web: readWebTarget(`https://${request.host}/`) }),
    ...(request.command === undefined ? {} : { shell: notLookedUp(request.command) }),
  };
}

function notLookedUp(command: string): ShellFacts {
  const opaque = "the command was not looked into";
  return {
    analysis: { units: [], redirects: [], listed: [], opaque, exactText: command.trim() },
    units: [],
    redirects: [],
  };
}

/** Why a call is asked about in every mode, also where permissions are bypassed. */
export function alwaysAsks(request: PermissionRequest, policy: PermissionPolicy): string | undefined {
  const facts = factsOf(request);
  return criticalRemoval(facts, policy) ?? hiddenFromRules(facts, policy);
}

/** Why a call is asked about whatever allow rules say. */
export function asksDespiteRules(request: PermissionRequest, policy: PermissionPolicy): string | undefined {
  const facts = factsOf(request);
  if (facts.web?.type === "web" && facts.web.isOdd !== undefined) return facts.web.isOdd;
  if (facts.shell?.analysis.opaque !== undefined)
    return `the command is not fully understood: ${facts.shell.analysis.opaque}`;
  for (const path of touchedPaths(facts)) {
    if (path.use === "read" || isDevice(path)) continue;
    for (const form of path.forms) {
      const why = protectionOf(form, policy);
      if (why !== undefined) return `${form} is protected: ${why}`;
    }
    if (path.isRepositoryPart === true)
      return `${path.forms[0]} is protected: git takes its folder for a repository and obeys it`;
    if (path.hasOtherNames === true)
      return `${path.forms[0]} has other names, and writing to it changes those too`;
  }
  return trackedRead(facts) ?? linkedRead(facts, policy);
}

/** What version control holds may be a file that rules forbid, and here it cannot be left out. */
function trackedRead({ shell }: CallFacts): string | undefined {
  if (shell?.rulesOnTracked !== true) return undefined;
  const unit = shell.analysis.units.find(({ showsTracked }) => showsTracked === true);
  return unit === undefined
    ? undefined
    : `${unit.written} may show files that rules forbid; name the files after --, or use git diff, log -p or show with a commit`;
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

function criticalRemoval(facts: CallFacts, policy: PermissionPolicy): string | undefined {
  const places = {
    workingDirectories: policy.workingDirectories,
    homes: [policy.home, ...(facts.otherHomes ?? [])],
  };
  for (const { use, forms } of touchedPaths(facts)) {
    if (use !== "remove") continue;
    const found = forms.map((form) => criticalityOf(form, places)).find((why) => why !== undefined);
    if (found !== undefined) return `it would remove ${found}`;
  }
  return undefined;
}

/** What rules forbid could hide in a command that is not understood, or in a path that is not known. */
function hiddenFromRules(facts: CallFacts, policy: PermissionPolicy): string | undefined {
  if (facts.shell === undefined) return undefined;
  const { analysis } = facts.shell;
  const rules = [...policy.deny, ...policy.ask];
  const unclear = analysis.units.find((unit) => unit.grantText === undefined || readsItsProgram(unit));
  const hidesCommand = analysis.opaque !== undefined || unclear !== undefined;
  const why = analysis.opaque ?? unclear?.reason ?? "a shell runs what it is sent";
  if (hidesCommand && rules.some(isScoped))
    return `the command is not fully understood (${why}), and rules forbid some`;
  const guessedWords = analysis.units.find((unit, at) =>
    hidesWords(unit, facts.shell?.units[at]?.programUnknown === true, rules),
  );
  if (guessedWords !== undefined)
    return `what ${guessedWords.written} does is only known when it runs, and rules forbid some commands`;
  const guessed = touchedPaths(facts).find(({ unknown }) => unknown !== undefined);
  if (guessed !== undefined && rules.some(isAboutPaths))
    return `it is not known which file the command uses (${guessed.unknown}), and rules forbid some`;
  return undefined;
}

/** Whether a command that a rule speaks of could be another one than its words show. */
function hidesWords(
  { words, written }: ShellUnit,
  programUnknown: boolean,
  rules: readonly PolicyRule[],
): boolean {
  const commands = rules.flatMap(({ rule: { specifier } }) =>
    specifier.type === "command" ? [specifier.text] : [],
  );
  if (commands.length === 0) return false;
  if (programUnknown) return true;
  const name = baseName(words[0]?.text ?? "");
  const isRestricted = commands.some((text) => text === name || text.startsWith(`${name} `));
  const isAlias = name === "git" && words.some(({ text }) => /^(?:--config-env=)?alias\./i.test(text));
  return (
    isRestricted && (isAlias || written.endsWith("…") || words.some(({ literal }, at) => !literal && at < 3))
  );
}

function baseName(text: string): string {
  return text.slice(text.lastIndexOf("/") + 1);
}

/** A shell without a script or text of its own takes its commands from what is sent to it. */
function readsItsProgram({ words: [program, ...rest] }: ShellUnit): boolean {
  const name = program?.text.slice(program.text.lastIndexOf("/") + 1) ?? "";
  if (!/^(?:ba|da|z|k|mk|a|fi|c|tc)?sh$/.test(name)) return false;
  return (
    rest.every(({ text }) => /^[-+]/.test(text)) && !rest.some(({ text }) => /^-\w*c|^--version$/.test(text))
  );
}

function isScoped({ rule }: PolicyRule): boolean {
  return rule.specifier.type === "command" || isAboutPaths({ rule });
}

function isAboutPaths({ rule }: Pick<PolicyRule, "rule">): boolean {
  return rule.specifier.type === "path";
}

/** A file with several names may be one that a rule forbids under another. */
function linkedRead(facts: CallFacts, policy: PermissionPolicy): string | undefined {
  const hasPatterns = policy.deny.some(
    ({ rule: { specifier } }) => specifier.type === "path" && /[*?[]/.test(specifier.pattern),
  );
  const linked = hasPatterns
    ? touchedPaths(facts).find(({ hasOtherNames }) => hasOtherNames === true)
    : undefined;
  return linked === undefined ? undefined : `${linked.forms[0]} has other names, and rules forbid some files`;
}

/** Why no one removes a path without being asked, in any mode; undefined for ordinary paths. */
export function criticalityOf(
  path: string,
  {
    workingDirectories,
    homes,
  }: { readonly workingDirectories: readonly string[]; readonly homes: readonly string[] },
): string | undefined {
  const bare = withoutGlob(path);
  if (bare === "/" || /^\/?[A-Za-z]:\/?$/.test(bare)) return "the whole file system";
  if (systemFolders.has(bare.toLowerCase())) return "a folder of the system";
  if (/^\/(?:home|Users)\/[^/]+$/.test(bare)) return "a home directory";
  if (homes.some((home) => isSameOrAbove(bare, home))) return "the home directory";
  if (workingDirectories.some((directory) => isSameOrAbove(bare, directory))) return "the project itself";
  if (bare.endsWith("/.git")) return "the history of a repository";
  return undefined;
}

/** `/x/*` empties `/x`. */
function withoutGlob(path: string): string {
  const bare = path
    .replace(/\/(?:\.?\*+|\.\[[^\]]*\]\*|\{[^}]*\*[^}]*\}|\.\?\?\*)(?=\/?$)/, "")
    .replace(/\/+$/, "");
  return bare === "" ? "/" : bare;
}

function isSameOrAbove(path: string, other: string): boolean {
  return path === other || other.startsWith(path === "/" ? "/" : `${path}/`);
}

const systemFolders: ReadonlySet<string> = new Set(
  `/bin /boot /dev /etc /home /lib /lib32 /lib64 /media /mnt /opt /proc /root /run /sbin /srv /sys /usr /usr/bin /usr/lib
  /usr/local /usr/sbin /usr/share /var /var/lib /var/log /users /system /library /applications /volumes /private
  /private/etc /private/var /c /c/windows /c/users`.split(/\s+/),
);

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
