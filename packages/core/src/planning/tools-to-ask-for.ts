import type { ChildPlan } from "./plan-run.ts";

/** Effects that a person is asked about; what only reads or talks to the runtime needs no question. */
const askedEffects: ReadonlySet<string> = new Set(["edit", "execute", "network"]);

/** The tools of a child that no rule allows as a whole: in the background it could not ask for them. */
export function toolsToAskFor(
  { tools: grants, policy }: ChildPlan,
  tools: readonly { readonly name: string; readonly effect: string }[],
): readonly string[] {
  if (policy.mode === "bypassPermissions" || policy.mode === "dontAsk" || policy.mode === "plan") return [];
  const allowed = new Set(
    policy.allow.filter(({ rule }) => rule.specifier.type === "whole").map(({ rule }) => rule.canonicalTool),
  );
  return tools
    .filter(
      ({ name, effect }) =>
        askedEffects.has(effect) &&
        // In its own memory an agent needs no permission.
        grants.some((grant) => grant.name === name && grant.confinedTo === undefined) &&
        !allowed.has(name),
    )
    .filter(({ effect }) => policy.mode !== "acceptEdits" || effect !== "edit")
    .map(({ name }) => name);
}
