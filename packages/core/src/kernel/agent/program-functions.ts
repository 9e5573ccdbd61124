import type { ChildPlan, ProgramFunction } from "../../planning/agent-plan.ts";
import { handInPlanTool, memberTools } from "../../planning/plan-rights.ts";
import { webSearchName } from "../../planning/plan-tools.ts";
import { toolSearchName } from "../../tools/create-tool-search.ts";
import type { FolderContext, ProgramParts } from "../runtime-context.ts";
import type { AgentServices } from "./agent-services.ts";

/** The functions that the program of this runtime has supplied, by name, as plans name them. */
export function programFunctions(
  runtime: ProgramParts & Pick<FolderContext, "discovered">,
): readonly ProgramFunction[] {
  const { model, extraTools, hooks, programServers, approver, canUseTool, host, discovered } = runtime;
  const ending = discovered.registry
    .list()
    .filter(({ definition }) => definition.behaviour?.onEnd !== undefined);
  return [
    ...(model === undefined ? [] : [{ kind: "model", name: model.facts.id } as const]),
    ...extraTools.map(({ name }) => ({ kind: "tool", name }) as const),
    ...hooks.map(({ event, name }) => ({ kind: "hook", name: name ?? event }) as const),
    ...[...programServers.keys()].map((name) => ({ kind: "server", name }) as const),
    ...(approver === undefined ? [] : [{ kind: "approver", name: "approver" } as const]),
    ...(canUseTool === undefined ? [] : [{ kind: "canUseTool", name: "canUseTool" } as const]),
    ...(host.ask === undefined ? [] : [{ kind: "ask", name: "host.ask" } as const]),
    ...ending.map(({ definition }) => ({ kind: "onEnd", name: definition.name }) as const),
  ];
}

/** Why this process cannot carry out a plan: functions of the program that made it, or tools, that are missing here. */
export function refusePlan(
  plan: ChildPlan,
  { runtime, tools, servers }: Pick<AgentServices, "runtime" | "tools" | "servers">,
): string | undefined {
  const here = programFunctions(runtime);
  const missing = (plan.functions ?? []).filter(
    ({ kind, name }) => !here.some((own) => own.kind === kind && own.name === name),
  );
  if (missing.length > 0) {
    const list = missing.map(({ kind, name }) => `${kind} ${JSON.stringify(name)}`).join(", ");
    return `its plan needs functions of the program that made it, which this process does not have: ${list}`;
  }
  const { switches } = runtime.discovered.settings.settings.permissions;
  if (plan.policy.mode === "bypassPermissions" && switches.disableBypassPermissionsMode === "disable")
    return "its plan bypasses permissions, which settings forbid here";
  const own = new Set((plan.mcpServers ?? []).flatMap((server) => (server.own ? [server.name] : [])));
  const known = new Set([
    ...tools.tools.map(({ name }) => name),
    ...tools.available.map(({ name }) => name),
    ...servers.resourceTools().map(({ name }) => name),
    "Skill",
    toolSearchName,
    webSearchName,
    ...(plan.task.team === undefined ? [] : [...memberTools, handInPlanTool]),
  ]);
  const unknown = plan.tools
    .map(({ name }) => name)
    .filter((name) => !known.has(name) && (own.size === 0 || !name.startsWith("mcp__")));
  if (unknown.length === 0) return undefined;
  return `its plan grants tools that this process does not have: ${unknown.join(", ")}`;
}
