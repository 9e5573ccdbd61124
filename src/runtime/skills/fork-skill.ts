import type { LoopPorts } from "../../loop/loop-ports.ts";
import type { RunPlan } from "../../planning/run-plan.ts";
import type { SpawnRequest } from "../../planning/spawn-request.ts";
import type { Skill } from "../../skills/skill.ts";
import type { Spawner } from "../../tasks/spawner.ts";
import type { Tool, ToolContext, ToolOutcome } from "../../tools/tool.ts";
import type { SkillPowers } from "./skill-powers.ts";

/** Runs a skill's text as the task of a child agent. */
export interface ForkSkill {
  /** Why there can be no child. */
  readonly refusal?: string;
  run(
    fork: { readonly skill: Skill; readonly text: string; readonly powers: SkillPowers },
    context: ToolContext,
    authorize: LoopPorts["authorize"] | undefined,
  ): Promise<ToolOutcome>;
}

/** Each start is decided about like a call of the Agent tool. */
export function createForkSkill({
  plan,
  children,
}: {
  readonly plan: RunPlan;
  readonly children: () => { readonly spawner: Spawner; readonly tool: Tool };
}): ForkSkill {
  const refusal = plan.spawn === "none" ? "this agent may not start others" : undefined;
  return {
    ...(refusal === undefined ? {} : { refusal }),
    async run({ skill, text, powers }, { callId, signal }, authorize) {
      const { spawner, tool } = children();
      const input = inputOf(skill, text);
      const call = { type: "tool_use", id: callId, name: tool.name, input } as const;
      const authorization = await authorize?.({ call, tool, input }, { signal });
      if (authorization?.type !== "allowed")
        return { content: authorization?.reason ?? "The agent is not ready yet.", isError: true };
      const outcome = await spawner.spawn(requestOf(skill, { text, powers, callId }), { signal });
      if (outcome.type === "refused") return { content: outcome.reason, isError: true };
      const notes = powers.notes.map((note) => `\n- ${note}`).join("");
      const isError = outcome.type === "ended" && outcome.isError;
      return { content: `${outcome.text}${notes}`, data: outcome.data, ...(isError ? { isError } : {}) };
    },
  };
}

/** A skill that is given as text although it asks for an agent of its own says so. */
export function noteForText(skill: Skill, fork: ForkSkill | undefined): readonly string[] {
  if (skill.context !== "fork") return [];
  const why = fork?.refusal ?? "an agent that was started by another starts none";
  return [
    `${skill.name} is meant to run in an agent of its own (${agentType(skill)}), but ${why}. Follow it yourself.`,
  ];
}

function agentType({ agent }: Skill): string {
  return agent ?? "general-purpose";
}

function inputOf(skill: Skill, prompt: string) {
  return { description: `Skill ${skill.name}`, prompt, subagent_type: agentType(skill) };
}

function requestOf(
  skill: Skill,
  { text, powers, callId }: { readonly text: string; readonly powers: SkillPowers; readonly callId: string },
): SpawnRequest {
  const { model, effort, background, source, name } = skill;
  return {
    agentType: agentType(skill),
    description: `Skill ${name}`,
    prompt: text,
    background: background === true,
    ...(model === undefined || model === "inherit" ? {} : { model }),
    ...(effort === undefined ? {} : { effort }),
    origin: "model",
    callId,
    skill: {
      name,
      allow: powers.allow,
      deny: powers.deny,
      hooks: powers.hooks,
      ...(source.plugin === undefined ? {} : { plugin: source.plugin }),
    },
  };
}
