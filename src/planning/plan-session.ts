import type { MemoryPlace } from "../context/memory-place.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { PermissionPolicy, PolicyRule } from "../permissions/decide.ts";
import type { PermissionMode } from "../permissions/permission-mode.ts";
import type { SandboxRights } from "../permissions/permission-policy.ts";
import type { AvailableTool } from "../tools/match-tools.ts";
import { grantTools } from "../tools/tool-grants.ts";
import { narrowByServers, serversOfRun } from "./agent-servers.ts";
import { chooseTools } from "./choose-tools.ts";
import { decideMode } from "./decide-mode.ts";
import { memoryFacts } from "./memory-facts.ts";
import {
  type LimitFacts,
  planSessionLimits,
  refuseAgentLimits,
  type SessionLimitOptions,
} from "./plan-limits.ts";
import type { Decided, Planned } from "./run-plan.ts";
import { limitTools } from "./session-tools.ts";
import { refuseSearch } from "./web-search.ts";

/** What the caller of a session asked for. */
export interface SessionRequest {
  readonly sessionId: string;
  readonly agentId: string;
  readonly permissionMode?: PermissionMode;
  /** The person said that nothing needs permission. */
  readonly skipPermissions?: boolean;
  /** `--tools`: which of the built-in tools exist; absent means all. */
  readonly tools?: readonly string[];
  readonly maxTurns?: number;
  readonly maxBudget?: number;
  readonly limits?: SessionLimitOptions;
  readonly effort?: string | number;
}

/** What was found out before planning; gathering it did the I/O. */
export interface SessionFacts {
  /** The agent that runs as the main thread, if one was named. */
  readonly definition?: AgentDefinition;
  readonly model: Decided<string>;
  /** Whether the model's provider searches the web itself; absent means it does. */
  readonly canSearch?: boolean;
  readonly available: readonly AvailableTool[];
  /** The MCP servers there are; `own` ones stand in the definition. */
  readonly servers?: readonly { readonly name: string; readonly own: boolean }[];
  readonly rules: {
    readonly allow: readonly PolicyRule[];
    readonly ask: readonly PolicyRule[];
    readonly deny: readonly PolicyRule[];
  };
  readonly settingsMode?: { readonly mode: PermissionMode; readonly from: string };
  readonly bypassForbidden?: boolean;
  readonly directory: string;
  readonly workingDirectories: readonly string[];
  readonly home: string;
  readonly platform: string;
  /** What commands may do because they run in a sandbox. */
  readonly sandbox?: SandboxRights;
  readonly system: readonly string[];
  /** Where the agent's memory is; without it, its `memory` adds nothing. */
  readonly memory?: MemoryPlace;
  /** The names of the skills whose text stands in `system`. */
  readonly skills?: readonly string[];
  readonly limits?: LimitFacts;
  /** Whether the files of the project may widen rights. */
  readonly trusted: boolean;
  /** What was already found not to count. */
  readonly notes?: readonly string[];
}

/** Decides a whole session of the main agent. Pure. */
export function planSession(request: SessionRequest, facts: SessionFacts): Planned {
  const { definition } = facts;
  const limits = refuseLimits(request);
  if (limits !== undefined) return limits;
  const mode = decideMode({ ...request, ...facts });
  if (mode.type === "refused") return mode;
  const policy: PermissionPolicy = {
    mode: mode.mode.value,
    ...facts.rules,
    workingDirectories: facts.workingDirectories,
    home: facts.home,
    platform: facts.platform,
    trusted: facts.trusted,
    ...optional("sandbox", facts.sandbox),
  };
  const choice = chooseTools(facts.available, request.tools);
  if (choice.type === "refused") return { ...choice, code: "unusable-tools" };
  const main = { id: request.agentId, name: definition?.name ?? "main" };
  const sessionTools = request.tools === undefined ? undefined : builtinNames(choice.tools);
  const search = { policy, model: facts.model.value, canSearch: facts.canSearch !== false };
  const { offered, withheld } = limitTools(
    facts.available,
    { ...optional("sessionTools", sessionTools), policy, agent: main },
    { refuse: (tool) => refuseSearch(tool, search) },
  );
  const memory = memoryFacts(definition ?? {}, facts.memory);
  const narrowed = narrowByServers(memory.definition, offered);
  const { available } = narrowed;
  const grant = grantTools({ definition: narrowed.definition, available, withheld, role: "main" });
  if (grant.type === "refused") return { type: "refused", reason: grant.reason };
  const maxTurns = decideTurns(request, definition);
  const effort = decideEffort(request, definition);
  return {
    type: "planned",
    plan: {
      sessionId: request.sessionId,
      agent: main,
      model: facts.model,
      ...(effort === undefined ? {} : { effort }),
      tools: grant.tools,
      spawn: grant.spawn,
      ...optional("sessionTools", sessionTools),
      policy: {
        ...policy,
        toolScopes: [{ anchor: facts.directory, tools: grant.tools, ...memory.scope, ...grant.exclusions }],
      },
      ...memory.plan,
      ...(facts.skills === undefined || facts.skills.length === 0 ? {} : { skills: facts.skills }),
      ...serversOfRun({
        definition: definition ?? {},
        servers: facts.servers ?? [],
        available,
        granted: grant.tools,
        policy,
      }),
      modeFrom: mode.mode.from,
      system: facts.system,
      ...optional("reminder", definition?.criticalSystemReminder_EXPERIMENTAL),
      ...optional("initialPrompt", definition?.initialPrompt),
      ...(maxTurns === undefined ? {} : { maxTurns }),
      ...planSessionLimits(request, definition, facts.limits),
      directory: facts.directory,
      notes: [
        ...(facts.notes ?? []),
        ...mode.notes,
        ...choice.notes,
        ...narrowed.notes,
        ...grant.notes.map(({ message }) => message),
      ],
    },
  };
}

function builtinNames(tools: readonly AvailableTool[]): readonly string[] {
  return tools.filter(({ origin }) => origin === "builtin").map(({ name }) => name);
}

function refuseLimits({ maxTurns, maxBudget, limits }: SessionRequest): Planned | undefined {
  const flaw =
    refuseAgentLimits(limits?.agent, "limits.agent") ?? refuseAgentLimits(limits?.tree, "limits.tree");
  if (flaw !== undefined) return refuseLimit(flaw);
  if (maxTurns !== undefined && (!Number.isSafeInteger(maxTurns) || maxTurns < 1)) {
    return refuseLimit(`maxTurns must be a whole number from 1, and it is ${maxTurns}.`);
  }
  if (maxBudget === undefined || maxBudget > 0) return undefined;
  return refuseLimit(`maxBudget must be an amount above 0, and it is ${maxBudget}.`);
}

function refuseLimit(reason: string): Planned {
  return { type: "refused", reason, code: "unusable-limit" };
}

function decideTurns(
  request: SessionRequest,
  definition: AgentDefinition | undefined,
): Decided<number> | undefined {
  if (request.maxTurns !== undefined) return { value: request.maxTurns, from: "the call" };
  if (definition?.maxTurns !== undefined) return { value: definition.maxTurns, from: "the definition" };
  return undefined;
}

function decideEffort(
  request: SessionRequest,
  definition: AgentDefinition | undefined,
): Decided<string | number> | undefined {
  if (request.effort !== undefined) return { value: request.effort, from: "the call" };
  if (definition?.effort !== undefined) return { value: definition.effort, from: "the definition" };
  return undefined;
}

function optional<Key extends string, Value>(key: Key, value: Value | undefined): { [K in Key]?: Value } {
  // A computed key of a literal type widens to an index signature; the object has exactly this key or none.
  return (value === undefined ? {} : { [key]: value }) as { [K in Key]?: Value };
}
