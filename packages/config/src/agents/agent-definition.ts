import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import type { Diagnostic, Place } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { PermissionMode } from "@retinue/gate/permission-policy.ts";
import type { HookRule } from "../hooks/read-hooks.ts";
import type { AgentLimits } from "./agent-limits.ts";
import { readDefinitionObject } from "./read-definition-object.ts";

/** Where definitions come from, highest rank first. */
export const agentScopes = ["managed", "session", "project", "user", "plugin", "builtin"] as const;
export type AgentScope = (typeof agentScopes)[number];

export type MemoryScope = "user" | "project" | "local";

/** An MCP server of a definition: one that is configured elsewhere, or one of its own. */
export type AgentMcpServer =
  | { readonly type: "reference"; readonly name: string; readonly tools?: readonly string[] | undefined }
  | { readonly type: "inline"; readonly name: string; readonly config: Readonly<Record<string, unknown>> };

/** What was in the file for one field, before it was understood. */
export interface WrittenField {
  readonly key: string;
  readonly value: unknown;
  readonly place?: Place | undefined;
}

export interface AgentSource {
  readonly scope: AgentScope;
  readonly file?: string | undefined;
  readonly plugin?: string | undefined;
  /** The id under which a plugin's agent is known: `plugin:name`. */
  readonly id?: string | undefined;
  /** Its folder is not trusted by itself, whatever the working folder is. */
  readonly untrusted?: true | undefined;
}

/** Whether a file may run programs and widen rights: one of a project only where its folder and the working folder are trusted. */
export function mayWiden(
  source: { readonly scope: string; readonly untrusted?: true },
  trusted: boolean,
): boolean {
  return source.scope !== "project" || (trusted && source.untrusted !== true);
}

/** What a program's definition may compute when the agent is started. */
export interface PromptContext {
  readonly agent: string;
  readonly task: string;
  readonly directory: string;
}

/** How an agent's run ended, as requested to its definition. */
export interface AgentEnding {
  readonly agent: string;
  readonly agentId: string;
  readonly status: string;
  readonly text: string;
}

/** The parts of a program's definition that are code; files never have them. */
export interface AgentBehaviour {
  readonly computePrompt?: ((context: PromptContext) => string | Promise<string>) | undefined;
  readonly onEnd?: ((ending: AgentEnding) => void | Promise<void>) | undefined;
}

/** One agent type: what it is for, what it may do, how it should behave. Plain data but for `behaviour`. */
export interface AgentDefinition {
  readonly name: string;
  /** The delegation signal. Empty only in plugin files that have none. */
  readonly description: string;
  readonly prompt: string;
  /** Entries as written; absent means all of the parent's tools, empty means none. */
  readonly tools?: readonly string[] | undefined;
  readonly disallowedTools?: readonly string[] | undefined;
  /** As written: an alias, a full id, `provider/model` or `inherit`. */
  readonly model?: string | undefined;
  readonly permissionMode?: PermissionMode | undefined;
  readonly maxTurns?: number | undefined;
  readonly skills?: readonly string[] | undefined;
  readonly mcpServers?: readonly AgentMcpServer[] | undefined;
  readonly hooks?: readonly HookRule[] | undefined;
  readonly memory?: MemoryScope | undefined;
  readonly color?: string | undefined;
  readonly background?: boolean | undefined;
  readonly effort?: string | number | undefined;
  /** `worktree`, or another word that a spawn must refuse rather than ignore. */
  readonly isolation?: string | undefined;
  readonly initialPrompt?: string | undefined;
  readonly omitClaudeMd?: boolean | undefined;
  readonly criticalSystemReminder_EXPERIMENTAL?: string | undefined;
  readonly forkContext?: boolean | undefined;
  /** Only in built-in agents that promise to change nothing: their commands only read, whatever rules and modes allow. */
  readonly onlyReads?: true | undefined;
  /** What it may take; a field of this product alone. */
  readonly limits?: AgentLimits | undefined;
  readonly source: AgentSource;
  readonly behaviour?: AgentBehaviour | undefined;
  /** Every field of the file by its canonical name, so that tools can say where a value came from. */
  readonly written: Readonly<Record<string, WrittenField>>;
}

/** An agent that can be asked for, with who it won against. */
export interface RegisteredAgent {
  /** What a call names: the definition's name, or `plugin:name`. */
  readonly id: string;
  readonly definition: AgentDefinition;
  /** Definitions of the same name that lost, best first. */
  readonly shadowed: readonly AgentDefinition[];
  /** The deny rule that hides it, if one does. */
  readonly deniedBy?: string | undefined;
}

export type AgentLookup =
  | { readonly type: "found"; readonly agent: RegisteredAgent }
  | { readonly type: "denied"; readonly agent: RegisteredAgent; readonly rule: string }
  | {
      readonly type: "unknown";
      readonly nearest?: string | undefined;
      readonly available: readonly string[];
    };

/** Who won, from where, and against whom. A value: a changed world gives a new registry. */
export interface AgentRegistry {
  /** By exact id, then by bare name of a plugin's agent, then without regard to case and separators. */
  find(name: string): AgentLookup;
  /** The agents a model may see, by name. */
  list(): readonly RegisteredAgent[];
  /** The same with those that deny rules hide. */
  all(): readonly RegisteredAgent[];
}

/** A deny rule for an agent; `*` in the pattern means any text. */
export interface AgentDenial {
  readonly pattern: string;
  readonly rule: string;
}

export interface RegistryInput {
  /** Of two definitions of one scope and name, the earlier wins. */
  readonly definitions: readonly AgentDefinition[];
  readonly denials?: readonly AgentDenial[] | undefined;
}

const registryShape = checks.shape({ definitions: checks.list, denials: checks.list }, ["definitions"]);

export function createRegistry(input: RegistryInput): AgentRegistry {
  checkArgument("The first argument of createRegistry()", registryShape, input);
  const { definitions, denials = [] } = input;
  const groups = groupById(definitions);
  const agents = new Map<string, RegisteredAgent>();
  for (const [id, [definition, ...shadowed]] of groups) {
    if (definition === undefined) continue;
    const denial = denials.find(({ pattern }) => denies(pattern, id, definition));
    agents.set(id, { id, definition, shadowed, deniedBy: denial?.rule });
  }
  const sorted = [...agents.values()].sort(byRankAndName);
  return {
    find: (name) => lookUp(name, agents, sorted),
    list: () => sorted.filter((agent) => agent.deniedBy === undefined),
    all: () => sorted,
  };
}

function groupById(definitions: readonly AgentDefinition[]): Map<string, AgentDefinition[]> {
  const groups = new Map<string, AgentDefinition[]>();
  for (const scope of agentScopes) {
    for (const definition of definitions) {
      if (definition.source.scope !== scope) continue;
      const id = definition.source.id ?? definition.name;
      const group = groups.get(id);
      if (group === undefined) groups.set(id, [definition]);
      else group.push(definition);
    }
  }
  return groups;
}

function byRankAndName(a: RegisteredAgent, b: RegisteredAgent): number {
  const rank =
    agentScopes.indexOf(a.definition.source.scope) - agentScopes.indexOf(b.definition.source.scope);
  return rank !== 0 ? rank : compareText(a.id, b.id);
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function lookUp(
  name: string,
  agents: ReadonlyMap<string, RegisteredAgent>,
  sorted: readonly RegisteredAgent[],
): AgentLookup {
  const agent =
    agents.get(name) ??
    onlyOne(sorted.filter((candidate) => candidate.definition.name === name)) ??
    onlyOne(sorted.filter((candidate) => bare(candidate.id) === bare(name))) ??
    onlyOne(
      sorted.filter(({ definition }) => looseNames(definition).some((each) => bare(each) === bare(name))),
    );
  if (agent === undefined) {
    const available = sorted.filter((candidate) => candidate.deniedBy === undefined).map(({ id }) => id);
    const nearest = nearestName(name, available);
    return { type: "unknown", available, nearest };
  }
  return agent.deniedBy === undefined
    ? { type: "found", agent }
    : { type: "denied", agent, rule: agent.deniedBy };
}

/** A loose match must not choose between two agents for the caller. */
function onlyOne<T>(items: readonly T[]): T | undefined {
  return items.length === 1 ? items[0] : undefined;
}

function bare(name: string): string {
  return name.toLowerCase().replace(/[-_\s]/g, "");
}

/** The bare name, and `plugin:name` also where sub-folders are between the two in the id. */
function looseNames({ name, source }: AgentDefinition): readonly string[] {
  return source.plugin === undefined ? [name] : [name, `${source.plugin}:${name}`];
}

/** A denial is matched as loosely as a call is, so that another spelling does not get around it. */
function denies(pattern: string, id: string, definition: AgentDefinition): boolean {
  return [id, ...looseNames(definition)].some((name) => matchesPattern(bare(pattern), bare(name)));
}

/** A definition made by a program. Lists may be arrays or comma-separated texts, as in files. */
export interface AgentInput
  extends Omit<
    Partial<AgentDefinition>,
    | "prompt"
    | "source"
    | "written"
    | "behaviour"
    | "tools"
    | "disallowedTools"
    | "skills"
    | "hooks"
    | "mcpServers"
  > {
  readonly name: string;
  readonly description: string;
  /** A text, or a function that makes it when the agent is started. */
  readonly prompt: string | ((context: PromptContext) => string | Promise<string>);
  readonly tools?: readonly string[] | string | undefined;
  readonly disallowedTools?: readonly string[] | string | undefined;
  readonly skills?: readonly string[] | string | undefined;
  readonly mcpServers?: readonly (string | Readonly<Record<string, unknown>>)[] | undefined;
  /** As in settings.json. */
  readonly hooks?: Readonly<Record<string, unknown>> | readonly HookRule[] | undefined;
  /** Called once when a run of this agent has ended, however it ended. */
  readonly onEnd?: ((ending: AgentEnding) => void | Promise<void>) | undefined;
}

/** Warnings about what was understood all the same. Any other one says that something written has no effect. */
const understood: ReadonlySet<string> = new Set([
  "misspelt-key",
  "empty-tools",
  "tools-word",
  "list-shaped-hooks",
  // Starting it is refused.
  "unknown-isolation",
]);

/**
 * Checks a program's definition like a file's, and more strictly: in a file a field that cannot be read is a warning, in a
 * program it is a mistake that no one would hear of, so it throws.
 */
export function defineAgent(input: AgentInput): AgentDefinition {
  if (!isRecord(input))
    throw unusable(
      undefined,
      `It must be an object with name, description and prompt, but is ${quote(input)}.`,
    );
  const { name, prompt, onEnd, ...fields } = input;
  if (typeof name !== "string")
    throw unusable(undefined, `Its name must be a string, but is ${quote(name)}.`);
  const { description } = fields;
  if (description !== undefined && typeof description !== "string")
    throw unusable(name, `Its description must be a string, but is ${quote(description)}.`);
  for (const [key, value] of Object.entries(fields))
    if (typeof value === "bigint" || typeof value === "symbol")
      throw unusable(name, `Its ${key} must be a value that a file could have, but is ${quote(value)}.`);
  if (typeof prompt !== "string" && typeof prompt !== "function")
    throw unusable(name, `Its prompt must be a text or a function, but is ${quote(prompt)}.`);
  if (onEnd !== undefined && typeof onEnd !== "function")
    throw unusable(name, `Its onEnd must be a function, but is ${quote(onEnd)}.`);
  const text = typeof prompt === "string" ? prompt : "";
  const { definition, diagnostics } = readDefinitionObject(
    String(name),
    { ...fields, prompt: text },
    { scope: "session" },
  );
  const flaw =
    diagnostics.find(({ severity }) => severity === "error") ??
    diagnostics.find((diagnostic) => isFlaw(diagnostic, definition));
  if (definition === undefined || flaw !== undefined) {
    const { message, advice } = flaw ?? diagnostics[0] ?? { message: "It cannot be read." };
    throw unusable(name, message, advice);
  }
  const computePrompt = typeof prompt === "function" ? prompt : undefined;
  if (computePrompt === undefined && onEnd === undefined) return definition;
  return { ...definition, behaviour: { computePrompt, onEnd } };
}

function isFlaw({ severity, code }: Diagnostic, definition: AgentDefinition | undefined): boolean {
  if (code === "unknown-permission-mode") return definition?.permissionMode === undefined;
  return severity === "warning" && !understood.has(code);
}

function unusable(name: unknown, message: string, advice?: string): RetinueError {
  const who = name === undefined ? "An agent" : `The agent ${JSON.stringify(name)}`;
  return new RetinueError(
    "invalid-definition",
    `${who} is not usable: ${message}`,
    advice === undefined ? {} : { advice },
  );
}
