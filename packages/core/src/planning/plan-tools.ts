import type { ToolName } from "@retinue/base/foundation/tool-table.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { type AvailableTool, removedTools } from "@retinue/config/tools/match-tools.ts";
import { parseToolEntry } from "@retinue/config/tools/tool-entry.ts";
import {
  type GrantedTool,
  grantTools,
  type SpawnRule,
  type ToolGrant,
  type WithheldTool,
} from "@retinue/config/tools/tool-grants.ts";
import { allowsTool, describeRule, type PermissionPolicy, removesTool } from "@retinue/gate/decide.ts";
import type { PolicyRule } from "@retinue/gate/permission-policy.ts";
import type { AgentPlan } from "./agent-plan.ts";
import { isReplaced, narrowByServers, type OwnServers } from "./servers-of-run.ts";

/** What limits the tools of an agent: the plan of its parent, or what its session says where it has none. */
export type ToolsAbove = Pick<AgentPlan, "sessionTools" | "policy" | "agent"> &
  Partial<Pick<AgentPlan, "tools">>;

/** What decides which tools an agent gets. */
export interface ToolFacts extends ToolLimits {
  /** Without its `memory` where there is none. */
  readonly definition: Partial<Pick<AgentDefinition, "tools" | "disallowedTools" | "mcpServers" | "memory">>;
  /** With tools: the plan of a parent, from which it inherits. */
  readonly above: ToolsAbove;
  /** Every tool of the session. */
  readonly available: readonly AvailableTool[];
  readonly own?: OwnServers;
  /** What the limits of the session leave of `available`, where that is known already and there are no own servers. */
  readonly session?: SessionTools;
  readonly background: boolean;
  /** Tools that a member of a team has besides those of its definition; absent for all others. */
  readonly forTeam?: readonly string[];
  /** It may start the agents that its `tools` name. */
  readonly nests?: boolean;
  /** Its parent is a subagent, whose tools limit it, whatever is in its list. */
  readonly isNested?: boolean;
}

interface PlannedTools {
  readonly grant: ToolGrant;
  /** What it could have had. */
  readonly available: readonly AvailableTool[];
  /** What its `mcpServers` name and is not there, each as one sentence. */
  readonly notes: readonly string[];
}

/**
 * A main agent has the tools of the session, or those of its `tools`. A child has without `tools` those of its parent, as far as
 * the parent has them; with `tools` those of the list that the session has. What the session or an agent above takes away is
 * missing for all of them, with a note where the list names it.
 */
export function planTools(facts: ToolFacts): PlannedTools {
  const { definition, above, own, background, nests = false, isNested = false } = facts;
  const hasOwn = own !== undefined && own.names.length > 0;
  const shared = hasOwn ? facts.available.filter(({ server }) => !isReplaced(server, own)) : facts.available;
  const session = facts.session ?? limitTools([...shared, ...(own?.tools ?? [])], above, facts);
  const inherited = definition.tools === undefined || isNested ? above.tools : undefined;
  // A tool that the parent has only for its memory is none that a child could use.
  const usable = inherited?.filter(({ confinedTo }) => confinedTo === undefined);
  const names = usable && new Set([...usable, ...(own?.tools ?? [])].map(({ name }) => name));
  const reachable = session.offered.filter(
    ({ name, origin }) => names?.has(name) !== false && !(background && origin === "mcp"),
  );
  const narrowed = narrowByServers(definition, reachable);
  const grantWith = (forTeam: readonly string[] | undefined): ToolGrant =>
    grantTools({
      definition: narrowed.definition,
      available: narrowed.available,
      withheld: session.withheld,
      forMemory: session.offered,
      role: above.tools === undefined ? "main" : "subagent",
      nests,
      ...(forTeam === undefined ? {} : { forTeam, offered: session.offered }),
      // A child that inherits a tool has it only as far as its parent.
      inherited:
        inherited === undefined
          ? undefined
          : new Map(
              inherited.flatMap(({ name, allowOnly }) =>
                allowOnly === undefined ? [] : [[name, allowOnly]],
              ),
            ),
    });
  const first = grantWith(facts.forTeam);
  const grant = needsSearch(first, definition, session)
    ? grantWith([...(facts.forTeam ?? []), toolSearchName])
    : withoutIdleSearch(first, session);
  const within = isNested && grant.type === "granted" ? withinParent(grant, above.tools ?? []) : grant;
  return { grant: within, available: narrowed.available, notes: narrowed.notes };
}

const toolSearchName: ToolName = "ToolSearch";

/** Who lists whole servers needs not list what finds their tools. */
function needsSearch(
  grant: ToolGrant,
  { tools: entries }: ToolFacts["definition"],
  { offered }: SessionTools,
): boolean {
  if (grant.type === "refused" || entries === undefined) return false;
  if (!offered.some(({ name }) => name === toolSearchName)) return false;
  const named = new Set(entries.map((entry) => parseToolEntry(entry).name));
  const ofServers = serverTools(offered);
  return (
    !grant.tools.some(({ name }) => name === toolSearchName) &&
    grant.tools.some(({ name }) => ofServers.has(name) && !named.has(name))
  );
}

/** Without tools of servers there is nothing to find. */
function withoutIdleSearch(grant: ToolGrant, { offered }: SessionTools): ToolGrant {
  if (grant.type === "refused" || !grant.tools.some(({ name }) => name === toolSearchName)) return grant;
  const ofServers = serverTools(offered);
  if (grant.tools.some(({ name }) => ofServers.has(name))) return grant;
  return { ...grant, tools: grant.tools.filter(({ name }) => name !== toolSearchName) };
}

function serverTools(tools: readonly AvailableTool[]): ReadonlySet<string> {
  return new Set(tools.flatMap(({ name, origin }) => (origin === "mcp" ? [name] : [])));
}

/** No tool that the parent has not, and none further than the parent's goes. */
function withinParent(
  grant: Extract<ToolGrant, { readonly type: "granted" }>,
  above: readonly GrantedTool[],
): ToolGrant {
  const has = new Map(above.map((tool) => [tool.name, tool]));
  const tools = grant.tools.flatMap((tool): readonly GrantedTool[] => {
    const parents = has.get(tool.name);
    if (parents === undefined) return [];
    const { allowOnly = parents.allowOnly, confinedTo, alsoIn } = tool;
    const only = tool.name === agentTool ? namedByBoth(allowOnly, parents.allowOnly) : allowOnly;
    if (only?.length === 0) return [];
    const deny = [...new Set([...(tool.deny ?? []), ...(parents.deny ?? [])])];
    const isConfined = confinedTo ?? parents.confinedTo;
    return [
      {
        name: tool.name,
        allowOnly: only,
        ...(deny.length === 0 ? {} : { deny }),
        ...(isConfined === undefined ? {} : { confinedTo: isConfined }),
        ...(alsoIn === undefined ? {} : { alsoIn }),
      },
    ];
  });
  return { ...grant, tools };
}

/** The names of agents that both lists hold; an absent list holds none here, because a subagent has to name them. */
function namedByBoth(
  own: readonly string[] | undefined,
  parents: readonly string[] | undefined,
): readonly string[] {
  return (own ?? []).filter((name) => parents?.includes(name) === true);
}

const agentTool: ToolName = "Agent";

/** The tools of a session, as its limits leave them to the agents below the main one. */
interface SessionTools {
  readonly offered: readonly AvailableTool[];
  readonly withheld: readonly WithheldTool[];
}

/** Limits of one run besides those of the session. */
interface ToolLimits {
  /** Deny rules of the skill that is its task. */
  readonly skillDeny?: readonly PolicyRule[];
  /** Why the run cannot have the provider's own web search although the session has it. */
  readonly noSearch?: string | undefined;
}

const noNames: ReadonlySet<string> = new Set();

/** What limits every agent of a session: `--tools`, deny rules for whole tools, and `disallowedTools` of the agents above. */
function limitTools(
  available: readonly AvailableTool[],
  { policy, agent, sessionTools }: ToolsAbove,
  { skillDeny = [], noSearch }: ToolLimits = {},
): SessionTools {
  const chosen = sessionTools && new Set(sessionTools);
  const entries = (policy.toolScopes ?? []).flatMap(({ removes = [] }) => removes);
  const removed = entries.length === 0 ? noNames : removedTools(entries, available);
  const deny = [...policy.deny, ...skillDeny];
  const reasonFor = (tool: AvailableTool): string | undefined => {
    if (chosen !== undefined && tool.origin === "builtin" && !chosen.has(tool.name))
      return "the session is limited to other tools (`--tools`)";
    const rule = deny.find((candidate) => removesTool(tool, { deny: [candidate] }));
    if (rule !== undefined) return `the rule ${describeRule(rule)} denies it`;
    if (removed.has(tool.name)) return `\`disallowedTools\` of ${agent.name} excludes it`;
    return tool.origin === "builtin" && isSearch(tool) ? noSearch : undefined;
  };
  const judged = available.map((tool) => ({ tool, reason: reasonFor(tool) }));
  return {
    offered: judged.flatMap(({ tool, reason }) => (reason === undefined ? [tool] : [])),
    withheld: judged.flatMap(({ tool, reason }) => (reason === undefined ? [] : [{ tool, reason }])),
  };
}

interface StartingFacts {
  readonly parent: AgentPlan;
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

/** The agents that a run can start, each with the tools that it would really get, for a choice among them. */
export function startableAgents(
  definitions: readonly AgentDefinition[],
  { parent, available, canSearch }: StartingFacts,
): readonly AgentDefinition[] {
  const session = limitTools(available, parent);
  const withoutSearch = limitTools(available, parent, { noSearch: "it cannot search" });
  return definitions.flatMap((definition) => {
    if (!maySpawn(parent.spawn, definition)) return [];
    const { tools } = definition;
    if (tools === undefined) return [withInheritedTools(definition, session, { parent, canSearch })];
    const grantOf = (left: SessionTools): ToolGrant =>
      planTools({ definition, above: parent, available, session: left, background: false }).grant;
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

export const webSearchName: ToolName = "WebSearch";

function isSearch({ name }: { readonly name: string }): boolean {
  return name === webSearchName;
}

/**
 * Why the provider's own web search is not offered to a run, or undefined. The provider runs it without asking, so there is
 * no call to decide about: it needs a model that has it and a rule or mode that allows it beforehand.
 */
export function whyNoSearch(
  policy: PermissionPolicy,
  { model, canSearch }: { readonly model: string; readonly canSearch: boolean },
): string | undefined {
  if (!canSearch) return `the model ${model} has no web search of its own`;
  if (allowsSearch(policy)) return undefined;
  return 'no allow rule matches, and the provider searches without asking; allow it with --allowedTools "WebSearch"';
}

/** Whether rules and mode allow the provider's own web search. */
export function allowsSearch({ toolScopes: _scopes, ...rights }: PermissionPolicy): boolean {
  return allowsTool(webSearchName, "network", rights);
}

type ToolChoice =
  | {
      readonly type: "chosen";
      readonly tools: readonly AvailableTool[];
      /** What was named and is not there, each as one sentence. */
      readonly notes: readonly string[];
    }
  | { readonly type: "refused"; readonly reason: string; readonly advice: string };

/** `--tools` names built-in tools; tools of programs and servers are not its business. */
export function chooseTools(
  available: readonly AvailableTool[],
  names: readonly string[] | undefined,
): ToolChoice {
  if (names === undefined) return { type: "chosen", tools: available, notes: [] };
  const narrowed = names.find((text) => parseToolEntry(text).type !== "whole");
  if (narrowed !== undefined) {
    return {
      type: "refused",
      reason: `The list of tools contains ${JSON.stringify(narrowed)}, which is not the name of a tool.`,
      advice: "List whole tools there, and limit their calls with allowedTools and disallowedTools.",
    };
  }
  const builtin = available.filter(({ origin }) => origin === "builtin");
  const grant = grantTools({ definition: { tools: names }, available: builtin, role: "main" });
  if (grant.type === "refused") {
    return { type: "refused", reason: grant.reason, advice: `There are ${namesOf(builtin)}.` };
  }
  const chosen = new Set(grant.tools.map(({ name }) => name));
  return {
    type: "chosen",
    tools: available.filter(({ name, origin }) => origin !== "builtin" || chosen.has(name)),
    notes: grant.notes.map(({ message }) => message),
  };
}

function namesOf(tools: readonly AvailableTool[]): string {
  return tools.map(({ name }) => name).join(", ");
}

/** Those of a list of tools that `--tools` can name. */
export function builtinNames(tools: readonly AvailableTool[]): readonly string[] {
  return tools.filter(({ origin }) => origin === "builtin").map(({ name }) => name);
}
