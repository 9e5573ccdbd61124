import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import type { Issue } from "@retinue/base/foundation/diagnostic.ts";
import { canonicalToolName } from "@retinue/base/foundation/tool-table.ts";
import {
  type AvailableTool,
  type Denials,
  describeSpecifiers,
  type Exclusions,
  issue,
  listNames,
  type MatchedEntry,
  matchLists,
  matchTools,
  specifiers,
  withheldTool,
} from "./match-tools.ts";
import { parseToolEntries } from "./tool-entry.ts";

export interface GrantRequest {
  readonly definition: {
    /** Absent means everything available, empty means nothing. */
    readonly tools?: readonly string[];
    readonly disallowedTools?: readonly string[];
    readonly memory?: string;
  };
  readonly available: readonly AvailableTool[];
  /** Tools that exist and that something above the definition takes away, with the reason. */
  readonly withheld?: readonly WithheldTool[];
  /** Without `tools`: how far inherited tools go, as specifiers; one that is not named here goes all the way. */
  readonly inherited?: ReadonlyMap<string, readonly string[]>;
  /** Where the tools that `memory` adds are taken from: all of `available` and perhaps more, in the same order. */
  readonly forMemory?: readonly AvailableTool[];
  /** Tools of the team that a member has although its definition does not list them, taken from `offered`. */
  readonly forTeam?: readonly string[];
  readonly offered?: readonly AvailableTool[];
  readonly role: "main" | "subagent";
  /** Of a subagent: it may start the agents that its `tools` name, because its session allows the depth. */
  readonly nests?: boolean;
}

export interface WithheldTool {
  readonly tool: AvailableTool;
  /** A clause, as in "the session is limited to other tools". */
  readonly reason: string;
}

export interface GrantedTool {
  readonly name: string;
  /** Only calls that match one of these specifiers; absent means every call. */
  readonly allowOnly?: readonly string[];
  /** Calls that match one of these specifiers are refused. */
  readonly deny?: readonly string[];
  /** The definition does not have the tool: it works only inside the memory directory. */
  readonly confinedTo?: "memory";
  /** Inside the memory directory the tool works although `allowOnly` does not name it. */
  readonly alsoIn?: "memory";
}

/** Which types of agent may be started. */
export type SpawnRule = "none" | "any" | { readonly only: readonly string[] };

export type ToolGrant =
  | {
      readonly type: "granted";
      /** In the order of `available`, so that equal grants give equal prompts. */
      readonly tools: readonly GrantedTool[];
      readonly spawn: SpawnRule;
      /** What `disallowedTools` says, which holds for the agents below as well. */
      readonly exclusions: Exclusions;
      /** Entries of `tools` that name nothing but withheld tools. */
      readonly lost: readonly string[];
      readonly notes: readonly Issue[];
    }
  | {
      readonly type: "refused";
      readonly entries: readonly string[];
      readonly reason: string;
      readonly lost: readonly string[];
      readonly notes: readonly Issue[];
    };

/** Which of the available tools a definition gets, and how far. `disallowedTools` is applied first and always wins. */
const grantShape = checks.shape(
  { definition: checks.thing, available: checks.list, role: checks.oneOf(["main", "subagent"]) },
  ["definition", "available", "role"],
);

export function grantTools(request: GrantRequest): ToolGrant {
  checkArgument("The first argument of grantTools()", grantShape, request);
  const {
    definition,
    available,
    withheld = [],
    inherited,
    forMemory,
    forTeam = [],
    offered = available,
    role,
    nests = false,
  } = request;
  const who: Who = { role, nests };
  const notes: Issue[] = [];
  const { denied, requestedRights } = matchLists(definition, available, notes);
  const reachable = new Set(available.filter((tool) => !denied.whole.has(tool.name) && mayHave(tool, who)));
  const { wanted, lost } = readRequestedRights(requestedRights, {
    withheld,
    inherited,
    reachable,
    who,
    notes,
  });
  if (role === "subagent") takeUnnamed(wanted, { reachable, entries: definition.tools, notes });
  const named = [...reachable].flatMap((tool) => grantOne(tool, wanted.get(tool.name), denied) ?? []);
  const spawn = spawnRule(named, reachable);
  const granted =
    spawn === "none" ? withoutChildTools(named, { available, entries: definition.tools, notes }) : named;
  const entries = definition.tools ?? [];
  if (granted.length === 0 && entries.length > 0 && !entries.includes("*")) {
    return { ...refuse(entries, role, notes), lost };
  }
  const tools =
    definition.memory === undefined
      ? granted
      : addMemoryTools(granted, { available: forMemory ?? available, withheld, denied, notes });
  return {
    type: "granted",
    tools: [...tools, ...teamTools({ forTeam, offered, denied, granted: tools })],
    spawn,
    exclusions: denied.exclusions,
    lost,
    notes,
  };
}

interface Who {
  readonly role: GrantRequest["role"];
  readonly nests: boolean;
}

/** TLS-7 is structural: whatever spawns is out of a subagent's reach, unless its session allows it to nest. */
function mayHave(tool: AvailableTool, { role, nests }: Who): boolean {
  if (role === "main") return true;
  return (nests || tool.effect !== "spawn") && tool.needsChildren !== true && tool.forTeams !== true;
}

/** A subagent starts only agents that its list names, so `Agent` alone, and no list at all, give it nothing. */
function takeUnnamed(
  wanted: Map<string, Limits>,
  {
    reachable,
    entries = [],
    notes,
  }: {
    readonly reachable: ReadonlySet<AvailableTool>;
    readonly entries: readonly string[] | undefined;
    readonly notes: Issue[];
  },
): void {
  for (const { name, effect } of reachable) {
    if (effect !== "spawn" || wanted.get(name) !== "whole") continue;
    wanted.delete(name);
    const index = parseToolEntries(entries).findIndex(
      ({ entry }) => entry.type === "whole" && canonicalToolName(entry.name) === name,
    );
    if (index !== -1) notes.push(issue("subagent-names-no-agents", entries[index] ?? name, ["tools", index]));
  }
}

/** Tools that work on child agents mean nothing to agents that can start none. */
function withoutChildTools(
  granted: readonly GrantedTool[],
  {
    available,
    entries = [],
    notes,
  }: {
    readonly available: readonly AvailableTool[];
    readonly entries: readonly string[] | undefined;
    readonly notes: Issue[];
  },
): readonly GrantedTool[] {
  const names = new Set(
    available.flatMap(({ name, needsChildren, forTeams }) =>
      needsChildren === true || forTeams === true ? [name] : [],
    ),
  );
  if (granted.some(({ name }) => names.has(name))) {
    for (const [index, { entry }] of parseToolEntries(entries).entries()) {
      if (names.has(entry.name))
        notes.push(issue("needs-agent-tool", entries[index] ?? "", ["tools", index]));
    }
  }
  return granted.filter(({ name }) => !names.has(name));
}

interface EntryContext {
  readonly withheld: readonly WithheldTool[];
  readonly inherited: GrantRequest["inherited"];
  readonly reachable: ReadonlySet<AvailableTool>;
  readonly who: Who;
  readonly notes: Issue[];
}

type Limits = "whole" | readonly string[];

interface RequestedRights {
  readonly wanted: Map<string, Limits>;
  readonly lost: readonly string[];
}

function readRequestedRights(
  requestedRights: readonly MatchedEntry[] | undefined,
  context: EntryContext,
): RequestedRights {
  const { reachable, inherited, notes } = context;
  if (requestedRights === undefined) {
    return {
      wanted: new Map([...reachable].map(({ name }) => [name, inherited?.get(name) ?? "whole"])),
      lost: [],
    };
  }
  const wanted = new Map<string, Limits>();
  const lost: string[] = [];
  for (const { text, entry, path, tools, notes: own } of requestedRights) {
    const missing = tools.length > 0 ? [] : findWithheld(entry.name, context);
    if (missing.length > 0) lost.push(text);
    if (entry.type === "malformed") {
      notes.push(issue("malformed-entry", text, path));
      continue;
    }
    const reasons = describeWithheld(text, missing, context, path);
    notes.push(...(reasons.length > 0 ? reasons : own), ...describeLoss(text, tools, context, path));
    for (const tool of tools.filter((candidate) => reachable.has(candidate))) {
      const limits = entry.type === "scoped" ? specifiers(tool, entry.specifier) : "whole";
      if (limits !== "whole") notes.push(...describeSpecifiers(tool.name, limits, path));
      const sum = addLimits(wanted.get(tool.name), limits);
      if (sum.length > 0) wanted.set(tool.name, sum);
    }
  }
  return { wanted, lost };
}

function findWithheld(name: string, { withheld }: EntryContext): readonly WithheldTool[] {
  if (withheld.length === 0) return [];
  const named = matchTools(
    name,
    withheld.map(({ tool }) => tool),
  ).tools;
  return withheld.filter(({ tool }) => named.includes(tool));
}

/** An entry whose tools all exist and are all withheld says so, and why. */
function describeWithheld(
  text: string,
  missing: readonly WithheldTool[],
  { who }: EntryContext,
  path: readonly (string | number)[],
): Issue[] {
  const reasons = missing.flatMap(({ tool, reason }) => (mayHave(tool, who) ? [reason] : []));
  return [...new Set(reasons)].map((reason) => withheldTool(text, reason, path));
}

/** Says why a tool that an entry names is nevertheless not granted; a pattern need not have all it covers. */
function describeLoss(
  text: string,
  tools: readonly AvailableTool[],
  context: EntryContext,
  path: readonly (string | number)[],
): Issue[] {
  const lost = tools.filter((tool) => !context.reachable.has(tool));
  if (lost.length === 0 || text.includes("*")) return [];
  const withheld = lost.filter((tool) => !mayHave(tool, context.who));
  if (withheld.length === 0) return [issue("tool-is-disallowed", text, path)];
  const isTeams = withheld.every(({ forTeams }) => forTeams === true);
  return [issue(isTeams ? "needs-team" : "subagent-cannot-spawn", text, path)];
}

function addLimits(before: Limits | undefined, more: Limits): Limits {
  if (before === "whole" || more === "whole") return "whole";
  return [...new Set([...(before ?? []), ...more])];
}

function grantOne(tool: AvailableTool, limits: Limits | undefined, denied: Denials): GrantedTool | undefined {
  if (limits === undefined) return undefined;
  const deny = denied.scoped.get(tool.name);
  const allowOnly = limits === "whole" ? undefined : withoutDeniedAgents(tool, limits, deny ?? []);
  if (allowOnly?.length === 0) return undefined;
  return {
    name: tool.name,
    allowOnly,
    deny,
  };
}

function withoutDeniedAgents(tool: AvailableTool, names: readonly string[], deny: readonly string[]) {
  if (tool.effect !== "spawn") return names;
  const denied = new Set(deny.map(comparableAgentName));
  return names.filter((name) => !denied.has(comparableAgentName(name)));
}

/** Agent types are compared without regard to case and separators. */
function comparableAgentName(name: string): string {
  return name.toLowerCase().replace(/[-_\s]/g, "");
}

function spawnRule(granted: readonly GrantedTool[], reachable: ReadonlySet<AvailableTool>): SpawnRule {
  const spawners = new Set([...reachable].filter((tool) => tool.effect === "spawn").map((tool) => tool.name));
  const rules = granted.filter((tool) => spawners.has(tool.name)).map((tool) => tool.allowOnly);
  if (rules.length === 0) return "none";
  if (rules.some((rule) => rule === undefined)) return "any";
  return { only: [...new Set(rules.flatMap((rule) => rule ?? []))] };
}

function addMemoryTools(
  granted: readonly GrantedTool[],
  {
    available,
    withheld,
    denied,
    notes,
  }: {
    readonly available: readonly AvailableTool[];
    readonly withheld: readonly WithheldTool[];
    readonly denied: Denials;
    readonly notes: Issue[];
  },
): GrantedTool[] {
  const byName = new Map(granted.map((tool) => [tool.name, tool]));
  // What a server or a program calls Write is not known to stay in a directory.
  for (const tool of available.filter(({ name, origin }) => origin === "builtin" && memoryTools.has(name))) {
    const deny = denied.scoped.get(tool.name);
    const present = byName.get(tool.name);
    if (denied.whole.has(tool.name)) notes.push(issue("memory-tool-disallowed", tool.name, ["memory"]));
    else if (present?.allowOnly !== undefined) byName.set(tool.name, { ...present, alsoIn: "memory" });
    else if (present === undefined) {
      byName.set(tool.name, {
        name: tool.name,
        confinedTo: "memory",
        deny,
      });
    }
  }
  for (const { tool, reason } of withheld) {
    if (tool.origin === "builtin" && memoryTools.has(tool.name))
      notes.push(withheldTool(tool.name, reason, ["memory"]));
  }
  return available.flatMap(({ name }) => byName.get(name) ?? []);
}

/** What denies a tool denies it in a team too; the tool to hand in a plan is only there for members. */
function teamTools({
  forTeam,
  offered,
  denied,
  granted,
}: {
  readonly forTeam: readonly string[];
  readonly offered: readonly AvailableTool[];
  readonly denied: Denials;
  readonly granted: readonly GrantedTool[];
}): readonly GrantedTool[] {
  const own = new Set(granted.map(({ name }) => name));
  return forTeam
    .filter(
      (name) =>
        !own.has(name) &&
        !denied.whole.has(name) &&
        (name === handInPlan || offered.some((tool) => tool.name === name && tool.origin === "builtin")),
    )
    .map((name) => {
      const deny = denied.scoped.get(name);
      return { name, deny };
    });
}

const handInPlan = "ExitPlanMode";

function refuse(
  entries: readonly string[],
  role: GrantRequest["role"],
  notes: readonly Issue[],
): Omit<Extract<ToolGrant, { type: "refused" }>, "lost"> {
  const reasons = notes.filter(({ path }) => path[0] === "tools").map(({ message }) => message);
  const summary = `\`tools\` names ${listNames(entries)}, and none of it is a tool this ${role === "main" ? "agent" : "subagent"} can have.`;
  return { type: "refused", entries, reason: [summary, ...new Set(reasons)].join(" "), notes };
}

const memoryTools: ReadonlySet<string> = new Set(["Read", "Write", "Edit"]);
