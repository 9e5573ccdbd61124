import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { classOf } from "@retinue/config/formats/tool-words.ts";
import { isGuardEvent } from "@retinue/config/hooks/read-hooks.ts";
import { builtinTools } from "@retinue/config/tools/builtin-tools.ts";
import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import { parseToolEntry, resolveToolName } from "@retinue/config/tools/tool-entry.ts";
import { type GrantedTool, grantTools } from "@retinue/config/tools/tool-grants.ts";
import { isWiderMode, type PermissionMode } from "@retinue/gate/permission-policy.ts";
import type { AgentPlan } from "./agent-plan.ts";
import { narrowByServers } from "./servers-of-run.ts";

/** How far one tool goes. */
export interface ToolRight {
  readonly only?: readonly string[];
  readonly not?: readonly string[];
}

/** What an agent may do, as plans decide it, before its parent and the settings take anything away. */
export interface AgentRights {
  readonly tools: Readonly<Record<string, ToolRight>>;
  /** `inherit` is the mode of the session. */
  readonly mode: PermissionMode | "inherit";
  /** Servers that it starts itself, by name, with what is started. */
  readonly servers: Readonly<Record<string, string>>;
  /** Events at which hooks of its own may refuse a call. */
  readonly guards: readonly string[];
}

export type RightsLevel = "none" | "narrowed" | "full";

export interface RightsRow {
  readonly class: string;
  readonly before: RightsLevel;
  readonly after: RightsLevel;
}

type RightsFields = Pick<
  AgentDefinition,
  "tools" | "disallowedTools" | "mcpServers" | "permissionMode" | "memory" | "hooks"
>;

/** A server and a tool that are named nowhere: an agent that has them has every server. */
const unnamed = serverTool("other-server", "other-tool");

/** The rights of a definition among all tools there could be; `others` are definitions that it is compared with. */
export function rightsOf(definition: RightsFields, others: readonly RightsFields[] = []): AgentRights {
  const universe = [
    ...builtinTools.map(({ description: _text, ...tool }): AvailableTool => ({ ...tool, origin: "builtin" })),
    ...serverTools([definition, ...others]),
  ];
  const narrowed = narrowByServers<RightsFields>(definition, universe);
  const grant = grantTools({ definition: narrowed.definition, available: narrowed.available, role: "main" });
  const granted = grant.type === "granted" ? grant.tools : [];
  const own = (definition.mcpServers ?? []).flatMap((server) =>
    server.type === "inline" ? [[server.name, JSON.stringify(server.config)] as const] : [],
  );
  const guards = (definition.hooks ?? []).filter(({ event }) => isGuardEvent(event));
  return {
    tools: Object.fromEntries(granted.map((tool) => [tool.name, rightOf(tool)])),
    mode: definition.permissionMode ?? "inherit",
    servers: Object.fromEntries(own),
    guards: guards.map(
      ({ event, matcher, handler }) => `${event} ${matcher ?? "*"} ${JSON.stringify(handler)}`,
    ),
  };
}

/** What a planned agent may do, in the same words: all that its parent and the settings left it. */
export function rightsOfPlan({ tools, policy }: Pick<AgentPlan, "tools" | "policy">): AgentRights {
  return {
    tools: Object.fromEntries(tools.map((tool) => [tool.name, rightOf(tool)])),
    mode: policy.mode,
    servers: {},
    guards: [],
  };
}

function rightOf({ allowOnly, deny, confinedTo }: GrantedTool): ToolRight {
  if (confinedTo !== undefined) return { only: ["its memory"] };
  return {
    only: allowOnly,
    not: deny,
  };
}

/** A tool of each server that is named, one that is not, and one of a server that is named nowhere. */
function serverTools(definitions: readonly RightsFields[]): readonly AvailableTool[] {
  const tools = new Map<string, AvailableTool>([[unnamed.name, unnamed]]);
  const add = (server: string, tool: string): void => {
    const made = serverTool(server, tool);
    tools.set(made.name, made);
  };
  for (const { tools: listed = [], disallowedTools = [], mcpServers = [] } of definitions) {
    for (const entry of [...listed, ...disallowedTools]) {
      const meaning = resolveToolName(parseToolEntry(entry).name);
      if (meaning.type !== "mcp" || meaning.server === undefined) continue;
      add(meaning.server, "other-tool");
      if (meaning.tool !== undefined) add(meaning.server, meaning.tool.replaceAll("*", "any"));
    }
    for (const server of mcpServers) {
      add(server.name, "other-tool");
      if (server.type === "reference") for (const tool of server.tools ?? []) add(server.name, tool);
    }
  }
  return [...tools.values()];
}

function serverTool(server: string, tool: string): AvailableTool {
  return { name: `mcp__${server}__${tool}`, effect: "network", origin: "mcp", server, mcp: { server, tool } };
}

/** The classes of a table of rights, in the order in which they are shown. */
export const rightsClasses = [
  "read",
  "create",
  "change",
  "notebook",
  "shell",
  "find",
  "search",
  "fetch",
  "websearch",
  "subagent",
  "todo",
  "ask",
  "skill",
  "mcp",
  "other",
] as const;

export function levelOf(rights: AgentRights, kind: string): RightsLevel {
  const own = Object.entries(rights.tools).filter(([name]) => classOf(name) === kind);
  if (own.length === 0) return "none";
  const isWhole = own.every(([, { only, not }]) => only === undefined && not === undefined);
  if (kind === "mcp") return isWhole && Object.hasOwn(rights.tools, unnamed.name) ? "full" : "narrowed";
  return isWhole ? "full" : "narrowed";
}

export function rightsTable(before: AgentRights, after: AgentRights): readonly RightsRow[] {
  return rightsClasses.map((kind) => ({
    class: kind,
    before: levelOf(before, kind),
    after: levelOf(after, kind),
  }));
}

/** One thing that the second may and the first may not, as a sentence. */
export interface Widening {
  readonly class: string;
  readonly text: string;
}

/** Everything in which `after` goes beyond `before`. Few patterns that are not equal are known to be no wider. */
export function findWidenings(before: AgentRights, after: AgentRights): readonly Widening[] {
  const found: Widening[] = [];
  for (const [name, right] of Object.entries(after.tools)) {
    // Its own list of steps touches nothing.
    if (name === "TodoWrite") continue;
    const old = Object.hasOwn(before.tools, name) ? before.tools[name] : undefined;
    if (old === undefined) {
      if (name === "NotebookEdit" && isWhole(before, "Edit") && isWhole(before, "Write")) continue;
      found.push({ class: classOf(name), text: `${name} is new` });
    } else if (isFurther(name, right, old))
      found.push({
        class: classOf(name),
        text: `${name} goes further: ${textOf(old)} before, ${textOf(right)} after`,
      });
  }
  const [oldMode, newMode] = [before, after].map(({ mode }) => (mode === "inherit" ? "default" : mode));
  const acts = Object.keys(after.tools).some((name) => actingClasses.has(classOf(name)));
  if (acts && newMode !== undefined && oldMode !== undefined && isWiderMode(newMode, oldMode))
    found.push({ class: "mode", text: `the mode is ${after.mode}, it was ${before.mode}` });
  for (const [name, started] of Object.entries(after.servers))
    if (before.servers[name] !== started)
      found.push({ class: "mcp", text: `it starts the server ${name} as it did not before` });
  for (const guard of before.guards)
    if (!after.guards.includes(guard))
      found.push({
        class: "hooks",
        text: `the hook that guards ${guard.split(" ").slice(0, 2).join(" ")} is gone`,
      });
  return found;
}

/** Everything that `before` may do and `after` may not, one sentence each. */
export function findNarrowings(before: AgentRights, after: AgentRights): readonly string[] {
  const tools = Object.entries(before.tools).flatMap(([name, right]) => {
    const now = Object.hasOwn(after.tools, name) ? after.tools[name] : undefined;
    if (now === undefined) return [`${name} is gone`];
    return isFurther(name, right, now)
      ? [`${name} goes less far: ${textOf(right)} before, ${textOf(now)} after`]
      : [];
  });
  const mode = (rights: AgentRights) => (rights.mode === "inherit" ? "default" : rights.mode);
  return [
    ...tools,
    ...(isWiderMode(mode(before), mode(after)) ? [`the mode is ${after.mode}, it was ${before.mode}`] : []),
    ...Object.keys(before.servers)
      .filter((name) => !Object.hasOwn(after.servers, name))
      .map((name) => `it no longer starts the server ${name}`),
  ];
}

/** Where the mode decides nothing, because all that is left only reads. */
const actingClasses: ReadonlySet<string> = new Set([
  "create",
  "change",
  "notebook",
  "shell",
  "mcp",
  "fetch",
  "websearch",
  "subagent",
  "other",
]);

function isWhole(rights: AgentRights, name: string): boolean {
  const right = Object.hasOwn(rights.tools, name) ? rights.tools[name] : undefined;
  return right !== undefined && right.only === undefined && right.not === undefined;
}

function isFurther(tool: string, after: ToolRight, before: ToolRight): boolean {
  const { only, not = [] } = before;
  const isWithin = (pattern: string, patterns: readonly string[] = []): boolean =>
    patterns.some((each) => isPartOf(tool, pattern, each));
  const allows =
    only !== undefined &&
    (after.only === undefined || after.only.some((pattern) => !isWithin(pattern, only)));
  return allows || not.some((pattern) => !isWithin(pattern, after.not));
}

const pathTools: ReadonlySet<string> = new Set(["Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep"]);

/** Whether a pattern is known to mean nothing that the other does not; few forms are. */
function isPartOf(tool: string, pattern: string, whole: string): boolean {
  if (pattern === whole) return true;
  const prefix = /:\*$/;
  if (tool === "Bash") {
    const [part, all] = [pattern, whole].map((each) => each.replace(prefix, " *"));
    return part === all || `*${part}` === all;
  }
  if (!pathTools.has(tool)) return false;
  // `**/` also means no folder at all, and a name alone is meant in every folder.
  if (whole.replaceAll("**/", "") === pattern) return true;
  return !whole.includes("/") && pattern === `./${whole}`;
}

function textOf({ only, not }: ToolRight): string {
  const parts = [
    ...(only === undefined ? [] : [`only ${only.join(" or ")}`]),
    ...(not === undefined ? [] : [`not ${not.join(" or ")}`]),
  ];
  return parts.length === 0 ? "all of it" : parts.join(", ");
}
