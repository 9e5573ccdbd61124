import type { Finding } from "../foundation/problem.ts";
import { describeMatch, finding, listNames } from "./grant-notes.ts";
import { splitEntries } from "./list-field.ts";
import { type AvailableTool, matchTools } from "./match-tools.ts";
import { parseToolEntry, type ToolEntry } from "./tool-entry.ts";

export interface GrantRequest {
  readonly definition: {
    /** Absent means everything available, empty means nothing. */
    readonly tools?: readonly string[];
    readonly disallowedTools?: readonly string[];
    readonly memory?: string;
  };
  readonly available: readonly AvailableTool[];
  /** Where the tools that `memory` adds are taken from: all of `available` and perhaps more, in the same order. */
  readonly forMemory?: readonly AvailableTool[];
  readonly role: "main" | "subagent";
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
      readonly notes: readonly Finding[];
    }
  | {
      readonly type: "refused";
      readonly entries: readonly string[];
      readonly because: string;
      readonly notes: readonly Finding[];
    };

/** Which of the available tools a definition gets, and how far. `disallowedTools` is applied first and always wins. */
export function grantTools({ definition, available, forMemory, role }: GrantRequest): ToolGrant {
  const notes: Finding[] = [];
  const denied = readDenials(definition.disallowedTools ?? [], available, notes);
  const reachable = new Set(available.filter((tool) => !denied.whole.has(tool.name) && mayHave(tool, role)));
  const wanted = readWishes(definition.tools, { available, reachable, role, notes });
  const granted = [...reachable].flatMap((tool) => grantOne(tool, wanted.get(tool.name), denied) ?? []);
  const entries = definition.tools ?? [];
  if (granted.length === 0 && entries.length > 0 && !entries.includes("*")) {
    return refuse(entries, role, notes);
  }
  const tools =
    definition.memory === undefined
      ? granted
      : addMemoryTools(granted, { available: forMemory ?? available, denied, notes });
  return { type: "granted", tools, spawn: spawnRule(granted, reachable), notes };
}

interface Denials {
  readonly whole: ReadonlySet<string>;
  readonly scoped: ReadonlyMap<string, readonly string[]>;
}

function readDenials(
  entries: readonly string[],
  available: readonly AvailableTool[],
  notes: Finding[],
): Denials {
  const whole = new Set<string>();
  const scoped = new Map<string, readonly string[]>();
  for (const [index, text] of entries.entries()) {
    const entry = parseDenial(text);
    const match = matchTools(entry.name, available);
    const path = ["disallowedTools", index];
    notes.push(...describeMatch(text, match, path));
    if (entry.type === "malformed") notes.push(finding("malformed-denial", text, path));
    for (const tool of match.tools) {
      if (entry.type !== "scoped") whole.add(tool.name);
      else scoped.set(tool.name, [...(scoped.get(tool.name) ?? []), ...denials(tool, entry.specifier)]);
    }
  }
  return { whole, scoped };
}

/** `Write (all files)` is a remark and no specifier: taken for one, it would deny nothing. `**` denies everything. */
function parseDenial(text: string): ToolEntry {
  const entry = parseToolEntry(text);
  if (entry.type === "scoped" && entry.specifier === "**") return { type: "whole", name: entry.name };
  return entry.type === "scoped" && /\s$/.test(text.slice(0, text.indexOf("(")))
    ? { type: "malformed", name: entry.name }
    : entry;
}

/** A comma may be part of a pattern or stand between two; in a denial both readings hold. */
function denials(tool: AvailableTool, specifier: string): readonly string[] {
  const rules = specifiers(tool, specifier);
  return rules.length === 1 && specifier.includes(",") ? [...rules, ...splitEntries(specifier)] : rules;
}

/** TLS-7 is structural: whatever spawns is out of a subagent's reach. */
function mayHave(tool: AvailableTool, role: GrantRequest["role"]): boolean {
  return role === "main" || tool.effect !== "spawn";
}

interface WishContext {
  readonly available: readonly AvailableTool[];
  readonly reachable: ReadonlySet<AvailableTool>;
  readonly role: GrantRequest["role"];
  readonly notes: Finding[];
}

type Limits = "whole" | readonly string[];

function readWishes(entries: readonly string[] | undefined, context: WishContext): Map<string, Limits> {
  const wanted = new Map<string, Limits>();
  if (entries === undefined) return new Map([...context.reachable].map((tool) => [tool.name, "whole"]));
  for (const [index, text] of entries.entries()) {
    const entry = parseToolEntry(text);
    const path = ["tools", index];
    if (entry.type === "malformed") {
      context.notes.push(finding("malformed-entry", text, path));
      continue;
    }
    const match = matchTools(entry.name, context.available);
    context.notes.push(
      ...describeMatch(text, match, path),
      ...describeLoss(text, match.tools, context, path),
    );
    for (const tool of match.tools.filter((candidate) => context.reachable.has(candidate))) {
      const limits = entry.type === "scoped" ? specifiers(tool, entry.specifier) : "whole";
      const sum = addLimits(wanted.get(tool.name), limits);
      if (sum.length > 0) wanted.set(tool.name, sum);
    }
  }
  return wanted;
}

/** Says why a tool that an entry names is nevertheless not granted; a pattern need not have all it covers. */
function describeLoss(
  text: string,
  tools: readonly AvailableTool[],
  context: WishContext,
  path: readonly (string | number)[],
): Finding[] {
  const lost = tools.filter((tool) => !context.reachable.has(tool));
  if (lost.length === 0 || text.includes("*")) return [];
  const isSpawn = lost.some((tool) => !mayHave(tool, context.role));
  return [finding(isSpawn ? "subagent-cannot-spawn" : "tool-is-disallowed", text, path)];
}

function addLimits(before: Limits | undefined, more: Limits): Limits {
  if (before === "whole" || more === "whole") return "whole";
  return [...new Set([...(before ?? []), ...more])];
}

/**
 * `Agent(a, b)` names two agents. `Bash(git add:*, git commit:*)` names two prefixes, as `:*` can only end a pattern.
 * Any other specifier is one rule, commas and all.
 */
function specifiers(tool: AvailableTool, specifier: string): readonly string[] {
  if (tool.effect === "spawn") return splitEntries(specifier);
  if (tool.effect !== "execute" || !specifier.includes(":*,")) return [specifier];
  const patterns = specifier.split(",").map((pattern) => pattern.trim());
  return patterns.every((pattern) => pattern.endsWith(":*")) ? patterns : [specifier];
}

function grantOne(tool: AvailableTool, limits: Limits | undefined, denied: Denials): GrantedTool | undefined {
  if (limits === undefined) return undefined;
  const deny = denied.scoped.get(tool.name);
  const allowOnly = limits === "whole" ? undefined : withoutDeniedAgents(tool, limits, deny ?? []);
  if (allowOnly?.length === 0) return undefined;
  return {
    name: tool.name,
    ...(allowOnly === undefined ? {} : { allowOnly }),
    ...(deny === undefined ? {} : { deny }),
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
    denied,
    notes,
  }: { readonly available: readonly AvailableTool[]; readonly denied: Denials; readonly notes: Finding[] },
): GrantedTool[] {
  const byName = new Map(granted.map((tool) => [tool.name, tool]));
  // What a server or a program calls Write is not known to stay in a directory.
  for (const tool of available.filter(({ name, origin }) => origin === "builtin" && memoryTools.has(name))) {
    const deny = denied.scoped.get(tool.name);
    const present = byName.get(tool.name);
    if (denied.whole.has(tool.name)) notes.push(finding("memory-tool-disallowed", tool.name, ["memory"]));
    else if (present?.allowOnly !== undefined) byName.set(tool.name, { ...present, alsoIn: "memory" });
    else if (present === undefined) {
      byName.set(tool.name, {
        name: tool.name,
        confinedTo: "memory",
        ...(deny === undefined ? {} : { deny }),
      });
    }
  }
  return available.flatMap(({ name }) => byName.get(name) ?? []);
}

function refuse(
  entries: readonly string[],
  role: GrantRequest["role"],
  notes: readonly Finding[],
): ToolGrant {
  const reasons = notes.filter(({ path }) => path[0] === "tools").map(({ message }) => message);
  const summary = `\`tools\` names ${listNames(entries)}, and none of it is a tool this ${role === "main" ? "agent" : "subagent"} can have.`;
  return { type: "refused", entries, because: [summary, ...new Set(reasons)].join(" "), notes };
}

const memoryTools: ReadonlySet<string> = new Set(["Read", "Write", "Edit"]);
