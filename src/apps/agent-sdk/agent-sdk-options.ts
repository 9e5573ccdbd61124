import { type Command, Option } from "commander";
import { misuse } from "../cli/session-options.ts";

/** Options that programs on the Agent SDK give and people seldom write. */
export interface AgentSdkOptions {
  readonly allowDangerouslySkipPermissions?: boolean;
  readonly permissionPrompts?: string;
  readonly thinking?: string;
  readonly maxThinkingTokens?: string;
  readonly includeHookEvents?: boolean;
  readonly awaitInitialize?: boolean;
  readonly fallbackModel?: string;
  readonly managedSettings?: string;
  readonly resumeSessionAt?: string;
  readonly resumeDropsTurn?: string;
  readonly sessionMirror?: boolean;
  readonly taskBudget?: string;
  readonly projectConfigRoot?: string;
  readonly betas?: string;
  readonly debug?: boolean | string;
  readonly debugFile?: string;
}

export function addAgentSdkOptions(program: Command): void {
  const hidden = (flags: string, description: string): Option => new Option(flags, description).hideHelp();
  for (const option of [
    hidden("--allow-dangerously-skip-permissions", "the mode bypassPermissions may be chosen later"),
    hidden("--permission-prompts <who>", "none: nobody is asked"),
    hidden("--thinking <mode>", "adaptive or disabled"),
    hidden("--max-thinking-tokens <n>", "tokens for thinking"),
    hidden("--include-hook-events", "also tell of hooks"),
    hidden("--await-initialize", "wait for initialize before anything else"),
    hidden("--fallback-model <model>", "the model that answers when the other cannot"),
    hidden("--managed-settings <json>", "settings of the organisation"),
    hidden("--resume-session-at <uuid>", "resume up to this message"),
    hidden("--resume-drops-turn <uuid>", "resume without this turn"),
    hidden("--session-mirror", "also send what is written to the transcript"),
    hidden("--task-budget <n>", "tokens of the task"),
    hidden("--project-config-root <folder>", "where the project's settings are"),
    hidden("--betas <list>", "features of the provider"),
    hidden("--debug [filter]", "show stack traces of errors"),
    hidden("--debug-file <file>", "where debug output goes"),
  ])
    program.addOption(option);
}

/** Options whose meaning would be lost; a program that gives one must hear that. */
const unsupported = [
  ["managedSettings", "--managed-settings"],
  ["resumeSessionAt", "--resume-session-at"],
  ["resumeDropsTurn", "--resume-drops-turn"],
  ["taskBudget", "--task-budget"],
  ["projectConfigRoot", "--project-config-root"],
] as const;

/** Refuses what cannot be honoured, and reads the rest. */
export function checkAgentSdkOptions(options: AgentSdkOptions): { readonly thinkingTokens?: number } {
  const [, flag] = unsupported.find(([name]) => options[name] !== undefined) ?? [];
  if (flag !== undefined) throw misuse(`${flag} is not supported.`, "Leave it out.");
  const { thinking, maxThinkingTokens: written } = options;
  if (thinking !== undefined && !["adaptive", "disabled", "enabled"].includes(thinking))
    throw misuse(`--thinking does not know "${thinking}".`, "Write adaptive or disabled.");
  if (thinking === "disabled") return { thinkingTokens: 0 };
  if (written === undefined) return {};
  const tokens = Number(written);
  if (!Number.isSafeInteger(tokens) || tokens < 0)
    throw misuse(`--max-thinking-tokens needs a whole number, but got ${JSON.stringify(written)}.`);
  return { thinkingTokens: tokens };
}
