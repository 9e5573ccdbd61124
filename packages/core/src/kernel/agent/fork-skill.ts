import { agentHooks, type SourcedHookRule } from "@retinue/config/hooks/hook-rule.ts";
import type { HookRule } from "@retinue/config/hooks/read-hooks.ts";
import type { MergedSettings } from "@retinue/config/settings/settings-layer.ts";
import { mayGrant, type Skill, type SkillGrants, skillGrants } from "@retinue/config/skills/skill.ts";
import { hasCommands } from "@retinue/config/skills/skill-pieces.ts";
import type { CallRequest, LoopPorts } from "../../loop/loop-ports.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { SpawnRequest } from "../../planning/agent-request.ts";
import type { Spawn } from "../../tasks/spawn-outcome.ts";
import type { Tool, ToolContext, ToolOutcome } from "../../tools/tool.ts";
import type { FolderContext } from "../runtime-context.ts";
import type { AuthorizeWithHooks } from "./create-authorize.ts";

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
  readonly plan: AgentPlan;
  readonly children: () => { readonly spawner: { readonly spawn: Spawn }; readonly tool: Tool };
}): ForkSkill {
  const refusal = plan.spawn === "none" ? "this agent may not start other agents" : undefined;
  return {
    refusal,
    async run({ skill, text, powers }, { callId, signal }, authorize) {
      const { spawner, tool } = children();
      const input = { description: `Skill ${skill.name}`, prompt: text, subagent_type: agentType(skill) };
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
  const why = fork?.refusal ?? "an agent that was started by another agent cannot start agents";
  return [
    `${skill.name} is meant to run in an agent of its own (${agentType(skill)}), but ${why}. Follow it yourself.`,
  ];
}

function agentType({ agent }: Skill): string {
  return agent ?? "general-purpose";
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
    effort,
    origin: "model",
    callId,
    skill: {
      name,
      allow: powers.allow,
      deny: powers.deny,
      hooks: powers.hooks,
      plugin: source.plugin,
    },
  };
}

/** The hooks of one skill, as far as its file may bring any. */
interface SkillHooks {
  readonly hooks: readonly HookRule[];
  /** Why those that are written do not count. */
  readonly note?: string;
}

function skillHooks(
  skill: Skill,
  { settings, trusted }: { readonly settings: Pick<MergedSettings, "plain">; readonly trusted: boolean },
): SkillHooks {
  const { hooks = [] } = skill;
  if (hooks.length === 0) return { hooks };
  const refuse = (why: string): SkillHooks => ({
    hooks: [],
    note: `The hooks of ${skill.name} were not registered: ${why}.`,
  });
  if (!mayGrant(skill, trusted)) return refuse("the folder is not trusted");
  if (settings.plain.disableAllHooks === true) return refuse("settings disable hooks");
  const isManagedOnly = settings.plain.allowManagedHooksOnly === true && skill.source.scope !== "managed";
  return isManagedOnly ? refuse("only the organisation's hooks are allowed") : { hooks };
}

/** The same tied to the agent that called the skill. */
export function registeredHooks(
  {
    name,
    hooks,
    plugin,
  }: {
    readonly name: string;
    readonly hooks: readonly HookRule[];
    readonly plugin?: { readonly name: string; readonly root: string } | undefined;
  },
  agent: { readonly id: string; readonly isSubagent: boolean },
): readonly SourcedHookRule[] {
  const rules = agentHooks(hooks, { ...agent, name: `skill ${name}` });
  if (plugin === undefined) return rules;
  return rules.map(({ hook }) => ({ hook, origin: { type: "plugin", ...plugin } }));
}

/** What a skill does besides giving its text. */
export interface SkillPowers extends SkillGrants {
  readonly hooks: readonly HookRule[];
  /** Why its commands are not run; absent where they may be. */
  readonly commandRefusal?: string;
}

type PowersGiven =
  | { readonly type: "given"; readonly powers: SkillPowers }
  | { readonly type: "refused"; readonly reason: string };

/** Works out what a skill's file may do here, before any question is asked. */
export function skillPowers(
  skill: Skill,
  {
    runtime,
    directory,
    hasShell,
  }: {
    readonly runtime: Pick<FolderContext, "trusted" | "discovered">;
    readonly directory: string;
    readonly hasShell: boolean;
  },
): SkillPowers {
  const { trusted, discovered } = runtime;
  const { settings } = discovered.settings;
  const grants = skillGrants(skill, { trusted, directory });
  const { hooks, note } = skillHooks(skill, { settings, trusted });
  const refusal = refuseCommands(skill, {
    trusted,
    hasShell,
    isOff: settings.plain.disableSkillShellExecution === true,
  });
  return {
    ...grants,
    hooks,
    notes: [...grants.notes, ...(note === undefined ? [] : [note])],
    ...(refusal === undefined ? {} : { commandRefusal: refusal }),
  };
}

/**
 * A skill that only says something needs no leave. One that runs commands, registers hooks or grants calls needs a rule
 * or an answer that allows it; in an unattended session it contributes its text, and nothing more.
 */
export async function givePowers(
  skill: Skill,
  powers: SkillPowers,
  ask: () => ReturnType<AuthorizeWithHooks>,
): Promise<PowersGiven> {
  const wantsCommands = hasCommands(skill.body) && powers.commandRefusal === undefined;
  if (powers.allow.length === 0 && powers.hooks.length === 0 && !wantsCommands)
    return { type: "given", powers };
  const authorization = await ask();
  if (authorization.type === "allowed") return { type: "given", powers };
  if (authorization.asked === true) return { type: "refused", reason: authorization.reason };
  const note = `No one has allowed what ${skill.name} does besides its text, so it grants no calls, registers no hooks and runs no commands here. A rule Skill(${skill.name}) allows it.`;
  return {
    type: "given",
    powers: {
      ...powers,
      allow: [],
      hooks: [],
      commandRefusal: "no one has allowed it",
      notes: [...powers.notes, note],
    },
  };
}

/** The question about a skill's powers is one about running something, not about reading a text. */
export function powersRequest({ call, tool, input }: CallRequest): CallRequest {
  return { call, tool: { ...tool, effect: "execute" }, input };
}

function refuseCommands(
  skill: Skill,
  {
    trusted,
    isOff,
    hasShell,
  }: { readonly trusted: boolean; readonly isOff: boolean; readonly hasShell: boolean },
): string | undefined {
  if (!mayGrant(skill, trusted)) return "the folder is not trusted";
  if (isOff) return "settings disable commands in skills";
  if (skill.shell === "powershell") return "it is written for PowerShell, which is not installed here";
  return hasShell ? undefined : "there is no shell in this session";
}
