import type { ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import { knownProviders } from "@retinue/core/models/provider-entry.ts";
import type { ChildPlan, ProgramFunction } from "@retinue/core/planning/agent-plan.ts";

/** A model of whichever provider: what a session needs that names none. */
export const anyModelNeed = "model";

/** What a worker must have to carry out a plan, so that it is found out before one takes it. */
export function planNeeds(plan: ChildPlan): readonly string[] {
  const functions = (plan.functions ?? []).flatMap(functionNeeds);
  const servers = (plan.mcpServers ?? []).flatMap(({ name, own }) => (own ? [] : [serverNeed(name)]));
  // A model of the program takes the place of every other.
  const isOwn = plan.functions?.some(({ kind }) => kind === "model") === true;
  return [...functions, ...servers, ...(isOwn ? [] : modelNeeds(plan.chosenModel))];
}

/** The need for the key of a provider. One that is not in the table is found out by the worker that asks it. */
export function modelNeeds({ provider = "anthropic" }: Pick<ChosenModel, "provider">): readonly string[] {
  const known = ["anthropic", "offline", ...knownProviders()];
  return known.includes(provider) ? [providerNeed(provider)] : [];
}

/** The hook by which every worker writes to the log before a call. */
export const storeHook = "retinue-store";

/** A function of a program by its name. Every worker asks people through the store, in place of the program's own approver. */
export function functionNeeds({ kind, name }: ProgramFunction): readonly string[] {
  if (kind === "approver" || (kind === "hook" && name === storeHook)) return [];
  if (kind === "server") return [serverNeed(name)];
  return [kind === "tool" || kind === "hook" ? `${kind}:${name}` : `function:${kind}:${name}`];
}

export function serverNeed(name: string): string {
  return `mcp:${name}`;
}

export function providerNeed(provider: string): string {
  return `model:${provider}`;
}
