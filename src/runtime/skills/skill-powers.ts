import type { HookRule } from "../../hooks/read-hooks.ts";
import type { CallRequest } from "../../loop/loop-ports.ts";
import type { Skill } from "../../skills/skill.ts";
import { mayGrant, type SkillGrants, skillGrants } from "../../skills/skill-grants.ts";
import { hasCommands } from "../../skills/skill-pieces.ts";
import type { AuthorizeWithHooks } from "../agent/create-authorize.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import { skillHooks } from "./skill-hooks.ts";

/** What a skill does besides giving its text. */
export interface SkillPowers extends SkillGrants {
  readonly hooks: readonly HookRule[];
  /** Why its commands are not run; absent where they may be. */
  readonly commandRefusal?: string;
}

export type PowersGiven =
  | { readonly type: "given"; readonly powers: SkillPowers }
  | { readonly type: "refused"; readonly reason: string };

/** Works out what a skill's file may do here, before anybody is asked. */
export function skillPowers(
  skill: Skill,
  {
    world,
    directory,
    hasShell,
  }: {
    readonly world: Pick<RuntimeContext, "trusted" | "discovered">;
    readonly directory: string;
    readonly hasShell: boolean;
  },
): SkillPowers {
  const { trusted, discovered } = world;
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
 * or somebody's yes; where no one can be asked it says its text, and nothing more comes of it.
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
  if (isOff) return "settings switch off commands in skills";
  if (skill.shell === "powershell") return "it is written for PowerShell, and there is none here";
  return hasShell ? undefined : "there is no shell in this session";
}
