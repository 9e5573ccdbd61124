import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { mayWiden } from "@retinue/config/agents/agent-source.ts";
import { readVariables, refuseVariable } from "@retinue/config/agents/own-variables.ts";
import type { AgentPlan, Decided } from "./agent-plan.ts";
import type { AgentRequest } from "./agent-request.ts";

export type PlannedVariables =
  | {
      readonly type: "planned";
      readonly env: NonNullable<AgentPlan["env"]>;
      readonly notes: readonly string[];
    }
  | { readonly type: "refused"; readonly reason: string };

/** The variables of an agent: those of its definition, and over them those of the call. One that it may not have refuses the start. */
export function planVariables(
  { env: called, keptEnv, origin }: Pick<AgentRequest, "env" | "keptEnv" | "origin">,
  definition: Pick<AgentDefinition, "env" | "source" | "name"> | undefined,
  trusted: boolean,
): PlannedVariables {
  const isHeld = definition?.env !== undefined && !mayWiden(definition.source, trusted);
  const said = [
    { value: isHeld ? undefined : definition?.env, from: "the definition", by: "person" as const },
    // They were allowed to the caller that set them, which may be another than the caller that resumes.
    { value: keptEnv, from: "the call", by: "person" as const },
    { value: called, from: "the call", by: origin === "model" ? ("model" as const) : ("person" as const) },
  ];
  const env = new Map<string, Decided<string>>();
  for (const { value, from, by } of said) {
    if (value === undefined) continue;
    const reading = readVariables(value);
    if (reading.type === "unreadable")
      return { type: "refused", reason: `\`env\` of ${from} cannot be read: ${reading.reason}.` };
    for (const [name, text] of Object.entries(reading.variables)) {
      const reason = refuseVariable(name, by);
      if (reason !== undefined)
        return { type: "refused", reason: `\`env\` of ${from} cannot be honoured: ${reason}.` };
      env.set(name, { value: text, from });
    }
  }
  const notes = isHeld
    ? [`\`env\` of ${definition.name} does not count, because the folder it comes from is not trusted.`]
    : [];
  return { type: "planned", env: Object.fromEntries(env), notes };
}
