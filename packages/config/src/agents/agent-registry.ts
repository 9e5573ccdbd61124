import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { type Diagnostic, placeText } from "@retinue/base/foundation/diagnostic.ts";
import { escapeLine } from "@retinue/base/foundation/escape-control-tags.ts";
import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import { agentScopes } from "./agent-source.ts";

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
      /** Why the file of that name was not loaded, where there is one. */
      readonly failure?: Diagnostic | undefined;
    };

/** Who won, from where, and against whom. A value: a changed world gives a new registry. */
export interface AgentRegistry {
  /** By exact id, then by bare name of a plugin's agent, then without regard to case and separators. */
  find(name: string): AgentLookup;
  /** The agents a model may see, by name. */
  list(): readonly RegisteredAgent[];
  /** The same with those that deny rules hide, and those that the runtime starts for its own purposes. */
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
  /** What was found in the files of agents; errors say which of them were not loaded. */
  readonly diagnostics?: readonly Diagnostic[] | undefined;
}

const registryShape = checks.shape(
  { definitions: checks.list, denials: checks.list, diagnostics: checks.list },
  ["definitions"],
);

export function createRegistry(input: RegistryInput): AgentRegistry {
  checkArgument("The first argument of createRegistry()", registryShape, input);
  const { definitions, denials = [], diagnostics = [] } = input;
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
  const agents = new Map<string, RegisteredAgent>();
  for (const [id, [definition, ...shadowed]] of groups) {
    if (definition === undefined) continue;
    const denial = denials.find(({ pattern }) => denies(pattern, id, definition));
    agents.set(id, { id, definition, shadowed, deniedBy: denial?.rule });
  }
  const sorted = [...agents.values()].sort(byRankAndName);
  return {
    find(name) {
      const found = lookUp(name, agents, sorted);
      if (found.type !== "unknown") return found;
      return { ...found, failure: diagnostics.find((diagnostic) => isAbout(diagnostic, name)) };
    },
    list: () => sorted.filter(isListed),
    all: () => sorted,
  };
}

function isAbout({ severity, file }: Diagnostic, name: string): boolean {
  if (severity !== "error" || file === undefined) return false;
  const [, stem = ""] = /([^/\\]+?)(?:\.\w+)?\.\w+$/.exec(file) ?? [];
  return bare(stem) === bare(name);
}

/** What to add where an agent is unknown because its file was not loaded. */
export function whyNotLoaded({ failure }: { readonly failure?: Diagnostic | undefined }): string {
  return failure === undefined
    ? ""
    : ` Its file has an error: ${placeText(failure)}: ${escapeLine(failure.message)}`;
}

/** The error for a name that no agent has, with the nearest name and all others. */
export function noSuchAgent(
  name: string,
  found: Extract<AgentLookup, { readonly type: "unknown" }>,
): RetinueError {
  const nearest = found.nearest === undefined ? "" : `Did you mean ${JSON.stringify(found.nearest)}? `;
  return new RetinueError(
    "unknown-agent",
    `There is no agent ${JSON.stringify(name)}.${whyNotLoaded(found)}`,
    { advice: `${nearest}The agents here are: ${found.available.join(", ")}.` },
  );
}

function isListed({ deniedBy, definition }: RegisteredAgent): boolean {
  return deniedBy === undefined && definition.source.isUnlisted !== true;
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
    const available = sorted.filter(isListed).map(({ id }) => id);
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
