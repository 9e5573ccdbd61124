import type { ToolName } from "@retinue/base/foundation/tool-table.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { MemoryPlace } from "@retinue/config/instructions/memory-place.ts";
import { type AvailableTool, removedTools } from "@retinue/config/tools/match-tools.ts";
import {
  type GrantedTool,
  grantTools,
  type SpawnRule,
  type ToolGrant,
  type WithheldTool,
} from "@retinue/config/tools/tool-grants.ts";
import { mcpServerPart } from "@retinue/gate/call-facts.ts";
import { allowsTool, describeRule, type PermissionPolicy, removesTool } from "@retinue/gate/decide.ts";
import type { PolicyRule, ToolScopes } from "@retinue/gate/permission-policy.ts";
import { narrowByServers, serversOfRun } from "./servers-of-run.ts";

/** What decides which tools a child gets. */
export interface ToolFacts extends ToolLimits {
  /** Without its `memory` where there is none. */
  readonly definition: Pick<AgentDefinition, "tools" | "disallowedTools" | "mcpServers" | "memory">;
  readonly parent: RunPlan;
  /** Every tool of the session. */
  readonly available: readonly AvailableTool[];
  readonly own?: OwnServers;
  /** What the limits of the session leave of `available`, where that is known already and there are no own servers. */
  readonly session?: SessionTools;
  readonly background: boolean;
  /** Tools that a member of a team has besides those of its definition; absent for all others. */
  readonly forTeam?: readonly string[];
}

interface PlannedTools {
  readonly grant: ToolGrant;
  /** What it could have had. */
  readonly available: readonly AvailableTool[];
  /** What its `mcpServers` name and is not there, each as one sentence. */
  readonly notes: readonly string[];
}

/**
 * Without `tools` those of the parent, as far as the parent has them; with `tools` those of the list that the session has.
 * What the session or an agent above takes away is missing for everybody, with a note where the list names it.
 */
export function planTools(facts: ToolFacts): PlannedTools {
  const { definition, parent, own, background } = facts;
  const hasOwn = own !== undefined && own.names.length > 0;
  const shared = hasOwn ? facts.available.filter(({ server }) => !isReplaced(server, own)) : facts.available;
  const session = facts.session ?? limitTools([...shared, ...(own?.tools ?? [])], parent, facts);
  const reachable = reachableTools(session, facts).filter(({ origin }) => !(background && origin === "mcp"));
  const narrowed = narrowByServers(definition, reachable);
  const isInheriting = definition.tools === undefined;
  const grant = grantTools({
    definition: narrowed.definition,
    available: narrowed.available,
    withheld: session.withheld,
    forMemory: session.offered,
    role: "subagent",
    ...(facts.forTeam === undefined ? {} : { forTeam: facts.forTeam, offered: session.offered }),
    ...(isInheriting ? { inherited: inheritedLimits(parent) } : {}),
  });
  return { grant, available: narrowed.available, notes: narrowed.notes };
}

function reachableTools(
  { offered }: SessionTools,
  { definition, parent, own }: ToolFacts,
): readonly AvailableTool[] {
  if (definition.tools !== undefined) return offered;
  // A tool that the parent has only for its memory is none that a child could use.
  const inherited = parent.tools.filter(({ confinedTo }) => confinedTo === undefined);
  const names = new Set([...inherited, ...(own?.tools ?? [])].map(({ name }) => name));
  return offered.filter(({ name }) => names.has(name));
}

/** A child that inherits a tool has it only as far as its parent. */
function inheritedLimits({ tools }: RunPlan): ReadonlyMap<string, readonly string[]> {
  return new Map(
    tools.flatMap(({ name, allowOnly }) => (allowOnly === undefined ? [] : [[name, allowOnly]])),
  );
}

type MemoryFields = Pick<AgentDefinition, "tools" | "disallowedTools" | "mcpServers" | "memory">;

/** What memory, or its absence, means for tools, rights and plan: an agent whose memory is off has no tools for it. */
export function memoryFacts(
  definition: Partial<MemoryFields>,
  place: MemoryPlace | undefined,
): {
  readonly definition: Partial<MemoryFields>;
  readonly scope: Pick<ToolScopes, "memoryDirectory">;
  readonly plan: Pick<RunPlan, "memory">;
} {
  if (place !== undefined) {
    return { definition, scope: { memoryDirectory: place.directory }, plan: { memory: place } };
  }
  const { memory: _memory, ...rest } = definition;
  return { definition: rest, scope: {}, plan: {} };
}

/** The tools of a session, as its limits leave them to the agents below the main one. */
interface SessionTools {
  readonly offered: readonly AvailableTool[];
  readonly withheld: readonly WithheldTool[];
}

/** Limits of one run besides those of the session. */
interface ToolLimits {
  /** Deny rules of the skill that is its task. */
  readonly skillDeny?: readonly PolicyRule[];
  /** Built-in tools that the run cannot have although the session has them, each with the reason. */
  readonly refused?: ReadonlyMap<string, string>;
}

const noNames: ReadonlySet<string> = new Set();

/** What limits everybody in a session: `--tools`, deny rules for whole tools, and `disallowedTools` of the agents above. */
export function limitTools(
  available: readonly AvailableTool[],
  parent: Pick<RunPlan, "sessionTools" | "policy" | "agent">,
  { skillDeny = [], refused }: ToolLimits = {},
): SessionTools {
  const { policy, agent } = parent;
  const chosen = parent.sessionTools === undefined ? undefined : new Set(parent.sessionTools);
  const entries = (policy.toolScopes ?? []).flatMap(({ removes = [] }) => removes);
  const removed = entries.length === 0 ? noNames : removedTools(entries, available);
  const deny = [...policy.deny, ...skillDeny];
  const reasonFor = (tool: AvailableTool): string | undefined => {
    if (chosen !== undefined && tool.origin === "builtin" && !chosen.has(tool.name))
      return "the session is limited to other tools (`--tools`)";
    const rule = deny.find((candidate) => removesTool(tool, { deny: [candidate] }));
    if (rule !== undefined) return `the rule ${describeRule(rule)} denies it`;
    if (removed.has(tool.name)) return `\`disallowedTools\` of ${agent.name} excludes it`;
    return tool.origin === "builtin" ? refused?.get(tool.name) : undefined;
  };
  const judged = available.map((tool) => ({ tool, reason: reasonFor(tool) }));
  return {
    offered: judged.flatMap(({ tool, reason }) => (reason === undefined ? [tool] : [])),
    withheld: judged.flatMap(({ tool, reason }) => (reason === undefined ? [] : [{ tool, reason }])),
  };
}

interface StartingFacts {
  readonly parent: RunPlan;
  /** Every tool of the session. */
  readonly available: readonly AvailableTool[];
  /** Whether an agent would have the provider's own search; asked only about those that it makes a difference to. */
  readonly canSearch: (definition: AgentDefinition) => boolean;
}

/** Whether a rule such as `Task(a, b)` lets an agent be started. */
export function maySpawn(
  rule: SpawnRule,
  { name, source }: Pick<AgentDefinition, "name" | "source">,
): boolean {
  if (rule === "any" || rule === "none") return rule === "any";
  return rule.only.some((allowed) => allowed === name || allowed === source.id);
}

/** The agents that a run can start, each with the tools that it would really get, for those who choose one of them. */
export function startableAgents(
  definitions: readonly AgentDefinition[],
  { parent, available, canSearch }: StartingFacts,
): readonly AgentDefinition[] {
  const session = limitTools(available, parent);
  const withoutSearch = limitTools(available, parent, { refused: noSearch });
  return definitions.flatMap((definition) => {
    if (!maySpawn(parent.spawn, definition)) return [];
    const { tools } = definition;
    if (tools === undefined) return [withInheritedTools(definition, session, { parent, canSearch })];
    const grantOf = (left: SessionTools): ToolGrant =>
      planTools({ definition, parent, available, session: left, background: false }).grant;
    const whole = grantOf(session);
    const isLess = whole.type === "granted" && whole.tools.some(isSearch) && !canSearch(definition);
    const grant = isLess ? grantOf(withoutSearch) : whole;
    if (grant.type === "refused" && !hasOwnServers(definition)) return [];
    return [{ ...definition, tools: tools.filter((entry) => !grant.lost.includes(entry)) }];
  });
}

/** What servers of its own would offer is known only when they run. */
function hasOwnServers({ mcpServers = [] }: AgentDefinition): boolean {
  return mcpServers.some(({ type }) => type === "inline");
}

/** Without a list an agent inherits what there is; only where that is a selection, it is named. */
function withInheritedTools(
  definition: AgentDefinition,
  { offered }: SessionTools,
  { parent, canSearch }: Pick<StartingFacts, "parent" | "canSearch">,
): AgentDefinition {
  const has = new Set(parent.tools.map(({ name }) => name));
  const own = offered.filter(({ effect, needsChildren }) => effect !== "spawn" && needsChildren !== true);
  // What only some models have does not make the rest a selection.
  if (own.every((tool) => has.has(tool.name) || isSearch(tool))) return definition;
  const inherits = own.filter((tool) => has.has(tool.name) && (!isSearch(tool) || canSearch(definition)));
  return { ...definition, tools: inherits.map(({ name }) => name) };
}

/** A decided value and where it came from, so that it can be shown to a person. */
export interface Decided<T> {
  readonly value: T;
  readonly from: string;
}

/** One run, decided completely before it starts. Plain data: it survives JSON. */
export interface RunPlan {
  readonly sessionId: string;
  readonly agent: { readonly id: string; readonly name: string };
  readonly model: Decided<string>;
  readonly effort?: Decided<string | number>;
  readonly tools: readonly GrantedTool[];
  readonly spawn: SpawnRule;
  /** Which agents the program may start, where that differs: its list of tools for the agent says nothing about itself. */
  readonly programSpawn?: SpawnRule;
  /** The built-in tools that `--tools` leaves to the session, to the agents below as well; absent means all. */
  readonly sessionTools?: readonly string[];
  readonly policy: PermissionPolicy;
  readonly modeFrom: string;
  readonly system: readonly string[];
  readonly reminder?: string;
  /** Put before the person's own first prompt. */
  readonly initialPrompt?: string;
  /** Absent: no limit. */
  readonly maxTurns?: Decided<number>;
  /** What the run may take in all; absent fields limit nothing. */
  readonly limits?: RunLimits;
  /** What the main agent and all its children may take together. */
  readonly treeLimits?: RunLimits;
  /** The names of the skills whose text is in `system`. */
  readonly skills?: readonly string[];
  /** Where the agent keeps what it learns. */
  readonly memory?: MemoryPlace;
  /** The MCP servers whose tools it may have; `own` ones are started for this run and end with it. */
  readonly mcpServers?: readonly {
    readonly name: string;
    readonly own: boolean;
    /** Only these of its tools; absent means all. */
    readonly tools?: readonly string[];
  }[];
  readonly directory: string;
  /** What was asked for and did not count, each as one sentence. */
  readonly notes: readonly string[];
}

export type Planned =
  | { readonly type: "planned"; readonly plan: RunPlan }
  | {
      readonly type: "refused";
      readonly reason: string;
      readonly advice?: string;
      /** Set where a value of the call is to blame. */
      readonly code?: "unusable-tools" | "unusable-limit";
    };

/** What one run may take, each with where the number came from. Turns have a field of their own in the plan. */
export interface RunLimits {
  /** From the start to the end, without the time a person is asked or a place is waited for. */
  readonly timeMs?: Decided<number>;
  /** Tokens read and written, all kinds together. */
  readonly tokens?: Decided<number>;
  /** US dollars. */
  readonly costUsd?: Decided<number>;
  readonly toolCalls?: Decided<number>;
  /** One tool call. */
  readonly toolTimeMs?: Decided<number>;
  /** Without any sign of life: reported at this time, stopped at twice of it. */
  readonly silenceMs?: Decided<number>;
  /** Equal rounds of calls that fail or bring nothing new. */
  readonly repeatedCalls?: Decided<number>;
}

export const webSearchName: ToolName = "WebSearch";

const noSearch: ReadonlyMap<string, string> = new Map([[webSearchName, "it cannot search"]]);

function isSearch({ name }: { readonly name: string }): boolean {
  return name === webSearchName;
}

/** The built-in tools that a run cannot have because of its model or its rules. */
export function refusedTools(facts: SearchFacts): ReadonlyMap<string, string> {
  const reason = refuseSearch(facts);
  return new Map(reason === undefined ? [] : [[webSearchName, reason]]);
}

/**
 * Why the provider's own web search is not offered to a run, or undefined. The provider runs it without asking, so there is
 * no call to decide about: it needs a model that has it and a rule or mode that allows it beforehand.
 */
function refuseSearch({ maySearch, model, canSearch }: SearchFacts): string | undefined {
  if (!canSearch) return `the model ${model} has no web search of its own`;
  if (maySearch) return undefined;
  return 'no rule allows it, and the provider searches without asking; allow it with --allowedTools "WebSearch"';
}

/** Whether rules and mode allow the provider's own web search. */
export function allowsSearch({ toolScopes: _scopes, ...rights }: PermissionPolicy): boolean {
  return allowsTool(webSearchName, "network", rights);
}

export interface SearchFacts {
  readonly maySearch: boolean;
  readonly model: string;
  readonly canSearch: boolean;
}

/** What comes from MCP servers that are in a definition. */
export interface OwnServers {
  readonly names: readonly string[];
  readonly tools: readonly AvailableTool[];
}

interface ServersAround {
  readonly definition: AgentDefinition;
  readonly parent: RunPlan;
  /** The MCP servers of the session; absent means those of the parent. */
  readonly servers?: readonly { readonly name: string }[];
  readonly own?: OwnServers;
}

export function serversOfChild(
  { definition, parent, servers: ofSession, own }: ServersAround,
  available: readonly AvailableTool[],
  granted: readonly GrantedTool[],
): Pick<RunPlan, "mcpServers"> {
  const shared = (definition.tools === undefined ? undefined : ofSession) ?? parent.mcpServers ?? [];
  const inherited = shared.filter(({ name }) => !isReplaced(name, own));
  const removedAbove = (parent.policy.toolScopes ?? []).flatMap(({ removes = [] }) => removes);
  const servers = [
    ...(own?.names ?? []).map((name) => ({ name, own: true })),
    ...inherited.map(({ name }) => ({ name, own: false })),
  ];
  const disallowedTools = [...removedAbove, ...(definition.disallowedTools ?? [])];
  return serversOfRun({
    definition: { ...definition, disallowedTools },
    servers,
    available,
    granted,
    policy: parent.policy,
  });
}

/** Whether one of the definition's own servers takes the place of another. */
export function isReplaced(server: string | undefined, own: OwnServers | undefined): boolean {
  if (server === undefined || own === undefined) return false;
  return own.names.some((name) => mcpServerPart(name) === mcpServerPart(server));
}

/**
 * A plan that was made elsewhere, under the rules that hold here as well: deny and ask rules of this session are added, and
 * a folder that is not trusted here is not trusted. The same rules are not added twice, so that a plan of the same settings
 * stays as it is. Never widens anything.
 */
export function withinSession<Plan extends Pick<RunPlan, "policy">>(
  plan: Plan,
  session: Pick<RunPlan, "policy">,
): Plan {
  const { policy } = plan;
  const trusted = policy.trusted === true && session.policy.trusted === true;
  return {
    ...plan,
    policy: {
      ...policy,
      ask: joined(policy.ask, session.policy.ask),
      deny: joined(policy.deny, session.policy.deny),
      ...(policy.trusted === undefined ? {} : { trusted }),
    },
  };
}

/** The rules of both, each once. */
export function joined(own: readonly PolicyRule[], others: readonly PolicyRule[]): readonly PolicyRule[] {
  const known = new Set(own.map(keyOf));
  return [...own, ...others.filter((rule) => !known.has(keyOf(rule)))];
}

function keyOf({ rule, anchor }: PolicyRule): string {
  return JSON.stringify([rule, anchor]);
}
