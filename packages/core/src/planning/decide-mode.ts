import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { mayWiden } from "@retinue/config/agents/agent-source.ts";
import type { PermissionMode } from "@retinue/gate/permission-policy.ts";
import type { Decided } from "./agent-plan.ts";

export interface ModeRequests {
  /** Of the call. */
  readonly permissionMode?: PermissionMode;
  /** The person said that nothing needs permission. */
  readonly skipPermissions?: boolean;
  readonly definition?: AgentDefinition;
  readonly settingsMode?: { readonly mode: PermissionMode; readonly from: string };
  readonly bypassForbidden?: boolean;
  /** Whether the files of the project may widen rights. */
  readonly trusted: boolean;
}

type ModeDecision =
  | { readonly type: "decided"; readonly mode: Decided<PermissionMode>; readonly notes: readonly string[] }
  | { readonly type: "refused"; readonly reason: string; readonly advice?: string };

/** The call decides, then the agent's definition, then settings; no file gives `bypassPermissions`. */
export function decideMode(requests: ModeRequests): ModeDecision {
  const { permissionMode, skipPermissions, settingsMode } = requests;
  if (skipPermissions === true || permissionMode === "bypassPermissions") {
    if (requests.bypassForbidden === true) return bypassRefused;
    return decided("bypassPermissions", "the call");
  }
  if (permissionMode !== undefined) return decided(permissionMode, "the call");
  const notes: string[] = [];
  const own = requests.definition?.permissionMode;
  if (own !== undefined) {
    const obstacle = refusalOfMode(own, requests);
    if (obstacle === undefined) return decided(own, "the definition");
    notes.push(obstacle);
  }
  if (settingsMode === undefined) return decided("default", "the default", notes);
  if (settingsMode.mode !== "bypassPermissions") return decided(settingsMode.mode, settingsMode.from, notes);
  return decided("default", "the default", [...notes, bypassInSettings(settingsMode.from)]);
}

const bypassRefused: ModeDecision = {
  type: "refused",
  reason: "Settings do not allow bypassing permissions (`disableBypassPermissionsMode`).",
  advice: "Choose another mode, and allow what is needed with rules.",
};

function decided(value: PermissionMode, from: string, notes: readonly string[] = []): ModeDecision {
  return { type: "decided", mode: { value, from }, notes };
}

/** Modes that ask no less than the default one; a repository without trust may only choose among these. */
const narrowModes: ReadonlySet<PermissionMode> = new Set(["default", "plan", "dontAsk"]);

function refusalOfMode(mode: PermissionMode, { definition, trusted }: ModeRequests): string | undefined {
  const name = definition?.name ?? "";
  if (mode === "bypassPermissions") {
    return `The agent ${name} asks for \`bypassPermissions\`, which no file can grant; its mode is ignored.`;
  }
  const isForeign = definition !== undefined && !mayWiden(definition.source, trusted);
  if (!isForeign || narrowModes.has(mode)) return undefined;
  return `The agent ${name} asks for the mode \`${mode}\`, which applies only in a trusted folder.`;
}

function bypassInSettings(from: string): string {
  return `${from} sets the mode \`bypassPermissions\`, which no file can grant; it is ignored.`;
}
