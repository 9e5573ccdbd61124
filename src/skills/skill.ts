import type { HookRule } from "../hooks/read-hooks.ts";

export type SkillScope = "managed" | "user" | "project" | "plugin";

/** Where a skill came from. A command file of `commands/` is a skill by another name. */
export interface SkillSource {
  readonly scope: SkillScope;
  readonly kind: "skill" | "command";
  /** The SKILL.md, or the command's own file. */
  readonly file: string;
  /** The folder that `${CLAUDE_SKILL_DIR}` means. */
  readonly directory: string;
  readonly plugin?: SkillPlugin;
}

export interface SkillPlugin {
  readonly name: string;
  readonly root: string;
  readonly marketplace?: string;
}

/** One skill: instructions that an agent or a person calls up when they are needed. Plain data. */
export interface Skill {
  /** What it is called by: the folder's name, `plugin:name` for those of plugins. */
  readonly name: string;
  /** The name written in the file, where it is another. */
  readonly displayName?: string;
  readonly description: string;
  readonly whenToUse?: string;
  readonly argumentHint?: string;
  /** Names for `$name`, in the order of the words given. */
  readonly arguments?: readonly string[];
  /** Only a person may call it, and no agent preloads it. */
  readonly disableModelInvocation: boolean;
  /** False: only a model may call it. */
  readonly userInvocable: boolean;
  /** Rules that allow calls while the turn lasts that called it; not a restriction. */
  readonly allowedTools?: readonly string[];
  /** Rules that forbid calls for as long. */
  readonly disallowedTools?: readonly string[];
  readonly model?: string;
  readonly effort?: string | number;
  /** It runs in a child agent, with its text as the task. */
  readonly context?: "fork";
  /** The type of that child. */
  readonly agent?: string;
  readonly background?: boolean;
  readonly hooks?: readonly HookRule[];
  /** Patterns of files it is meant for; it is listed only where one of them was touched. */
  readonly paths?: readonly string[];
  readonly shell?: "bash" | "powershell";
  /** The text below the frontmatter. */
  readonly body: string;
  readonly source: SkillSource;
}
