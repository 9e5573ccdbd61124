import { agentHooks } from "../../hooks/agent-hooks.ts";
import type { HookRule } from "../../hooks/read-hooks.ts";
import type { SourcedHookRule } from "../../hooks/select-hooks.ts";
import type { MergedSettings } from "../../settings/merge-settings.ts";
import type { Skill } from "../../skills/skill.ts";
import { mayGrant } from "../../skills/skill-grants.ts";

/** The hooks of one skill, as far as its file may bring any. */
export interface SkillHooks {
  readonly hooks: readonly HookRule[];
  /** Why those that are written do not count. */
  readonly note?: string;
}

export function skillHooks(
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
  if (settings.plain.disableAllHooks === true) return refuse("settings switch hooks off");
  const isManagedOnly = settings.plain.allowManagedHooksOnly === true && skill.source.scope !== "managed";
  return isManagedOnly ? refuse("only hooks of the organisation are permitted") : { hooks };
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
