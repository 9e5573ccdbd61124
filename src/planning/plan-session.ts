import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { type PermissionPolicy, type PolicyRule, removesTool } from "../permissions/decide.ts";
import type { PermissionMode } from "../permissions/permission-mode.ts";
import type { AvailableTool } from "../tools/match-tools.ts";
import { type GrantedTool, grantTools } from "../tools/tool-grants.ts";
import type { Decided, Planned } from "./run-plan.ts";

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
  readonly effort?: string | number;
}

/** What was found out before planning; gathering it did the I/O. */
export interface SessionFacts {
  /** The agent that runs as the main thread, if one was named. */
  readonly definition?: AgentDefinition;
  readonly model: Decided<string>;
  readonly available: readonly AvailableTool[];
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
  readonly system: readonly string[];
}

/** Decides a whole session of the main agent. Pure. */
export function planSession(request: SessionRequest, facts: SessionFacts): Planned {
  const { definition } = facts;
  const mode = decideMode(request, facts);
  if (mode.type === "refused") return mode;
  const policy: PermissionPolicy = {
    mode: mode.mode.value,
    ...facts.rules,
    workingDirectories: facts.workingDirectories,
    home: facts.home,
  };
  const available = chooseTools(facts.available, request.tools).filter(
    ({ name }) => !removesTool(name, policy),
  );
  const grant = grantTools({ definition: definition ?? {}, available, role: "main" });
  if (grant.type === "refused") return { type: "refused", because: grant.because };
  const maxTurns = decideTurns(request, definition);
  const effort = decideEffort(request, definition);
  return {
    type: "planned",
    plan: {
      sessionId: request.sessionId,
      agent: { id: request.agentId, name: definition?.name ?? "main" },
      model: facts.model,
      ...(effort === undefined ? {} : { effort }),
      tools: grant.tools,
      spawn: grant.spawn,
      policy,
      modeFrom: mode.mode.from,
      system: facts.system,
      ...optional("reminder", definition?.criticalSystemReminder_EXPERIMENTAL),
      ...optional("initialPrompt", definition?.initialPrompt),
      ...(maxTurns === undefined ? {} : { maxTurns }),
      ...(request.maxBudget === undefined
        ? {}
        : { maxBudget: { value: request.maxBudget, from: "the call" } }),
      directory: facts.directory,
      notes: [...mode.notes, ...grant.notes.map(({ message }) => message)],
    },
  };
}

type ModeDecision =
  | { readonly type: "decided"; readonly mode: Decided<PermissionMode>; readonly notes: readonly string[] }
  | { readonly type: "refused"; readonly because: string; readonly advice?: string };

/** The call decides, then the agent's definition, then settings; no file gives `bypassPermissions`. */
function decideMode(request: SessionRequest, facts: SessionFacts): ModeDecision {
  const notes: string[] = [];
  const wantsBypass = request.skipPermissions === true || request.permissionMode === "bypassPermissions";
  if (wantsBypass) {
    if (facts.bypassForbidden === true) {
      return {
        type: "refused",
        because: "Settings forbid to bypass permissions (disableBypassPermissionsMode).",
      };
    }
    return { type: "decided", mode: { value: "bypassPermissions", from: "the call" }, notes };
  }
  if (request.permissionMode !== undefined) {
    return { type: "decided", mode: { value: request.permissionMode, from: "the call" }, notes };
  }
  const own = facts.definition?.permissionMode;
  if (own === "bypassPermissions")
    notes.push("A definition cannot bypass permissions; its permissionMode was ignored.");
  else if (own !== undefined) return { type: "decided", mode: { value: own, from: "the definition" }, notes };
  const fromSettings = facts.settingsMode;
  if (fromSettings !== undefined && fromSettings.mode !== "bypassPermissions") {
    return { type: "decided", mode: { value: fromSettings.mode, from: fromSettings.from }, notes };
  }
  return { type: "decided", mode: { value: "default", from: "the default" }, notes };
}

/** `--tools` names built-in tools; tools of programs and servers are not its business. */
function chooseTools(
  available: readonly AvailableTool[],
  names: readonly string[] | undefined,
): readonly AvailableTool[] {
  if (names === undefined) return available;
  const wanted = grantTools({ definition: { tools: names }, available, role: "main" });
  const chosen = new Set(wanted.type === "granted" ? wanted.tools.map(({ name }: GrantedTool) => name) : []);
  return available.filter((tool) => tool.origin !== "builtin" || chosen.has(tool.name));
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
