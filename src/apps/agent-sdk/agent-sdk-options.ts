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
  readonly debug?: boolean;
  readonly debugFile?: string;
  readonly worktree?: string | boolean;
  readonly tmux?: string | boolean;
  readonly teleport?: string | boolean;
  readonly remote?: string | boolean;
  readonly fromPr?: string | boolean;
  readonly file?: string;
  readonly init?: boolean;
  readonly initOnly?: boolean;
  readonly maintenance?: boolean;
  readonly bare?: boolean;
  readonly chrome?: boolean;
  readonly ide?: boolean;
  readonly mcpDebug?: boolean;
  readonly remoteControl?: string | boolean;
  readonly brief?: boolean;
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
    hidden("--debug", "show stack traces of errors"),
    hidden("--debug-file <file>", "where debug output goes"),
    hidden("--worktree [name]", "work in a worktree"),
    hidden("--tmux [mode]", "a terminal for the worktree"),
    hidden("--teleport [session]", "take over a session of the cloud"),
    hidden("--remote [description]", "a session in the cloud"),
    hidden("--from-pr [value]", "the session of a pull request"),
    hidden("--file <spec>", "files to download at the start"),
    hidden("--init", "run set-up hooks"),
    hidden("--init-only", "run set-up hooks and end"),
    hidden("--maintenance", "run maintenance hooks"),
    hidden("--bare", "no hooks, plugins or memory"),
    hidden("--chrome", "use a browser"),
    hidden("--no-chrome", "use no browser"),
    hidden("--ide", "connect to an editor"),
    hidden("--mcp-debug", "show errors of MCP servers"),
    hidden("--remote-control [name]", "steer the session from elsewhere"),
    hidden("--brief", "let the agent write messages"),
  ])
    program.addOption(option);
}

/** Options whose meaning would be lost; whoever gives one must hear that. */
const unsupported = [
  ["managedSettings", "--managed-settings"],
  ["resumeSessionAt", "--resume-session-at"],
  ["resumeDropsTurn", "--resume-drops-turn"],
  ["taskBudget", "--task-budget"],
  ["projectConfigRoot", "--project-config-root"],
  ["worktree", "--worktree"],
  ["tmux", "--tmux"],
  ["teleport", "--teleport"],
  ["remote", "--remote"],
  ["fromPr", "--from-pr"],
  ["file", "--file"],
  ["init", "--init"],
  ["initOnly", "--init-only"],
  ["maintenance", "--maintenance"],
  ["bare", "--bare"],
] as const;

/** Options about browsers, editors and the cloud, which can have no effect here. */
const meaningless = [
  ["betas", "--betas"],
  ["chrome", "--chrome"],
  ["ide", "--ide"],
  ["mcpDebug", "--mcp-debug"],
  ["remoteControl", "--remote-control"],
  ["debugFile", "--debug-file"],
  ["brief", "--brief"],
] as const;

/** Options that only mean something to a host on both pipes. */
const forHosts = [
  ["includeHookEvents", "--include-hook-events"],
  ["sessionMirror", "--session-mirror"],
  ["awaitInitialize", "--await-initialize"],
] as const;

export interface CheckedSdkOptions {
  readonly thinkingTokens?: number;
  /** What has no effect, each as one sentence. */
  readonly notes: readonly string[];
}

/** Refuses what cannot be honoured, and reads the rest. */
export function checkAgentSdkOptions(
  options: AgentSdkOptions,
  { isHosted }: { readonly isHosted: boolean },
): CheckedSdkOptions {
  const [, flag] = unsupported.find(([name]) => options[name] !== undefined) ?? [];
  if (flag !== undefined) throw misuse(`${flag} is not supported.`, "Leave it out.");
  const [, host] = (isHosted ? [] : forHosts).find(([name]) => options[name] !== undefined) ?? [];
  if (host !== undefined)
    throw misuse(`${host} has no meaning without --input-format stream-json --output-format stream-json.`);
  const notes = meaningless
    .filter(([name]) => options[name] !== undefined && options[name] !== false)
    .map(([, name]) => `${name} has no effect here.`);
  return { ...readThinking(options), notes };
}

function readThinking({ thinking, maxThinkingTokens: written }: AgentSdkOptions): {
  readonly thinkingTokens?: number;
} {
  if (thinking !== undefined && !["adaptive", "disabled", "enabled"].includes(thinking))
    throw misuse(`--thinking does not know "${thinking}".`, "Write adaptive or disabled.");
  if (thinking === "disabled") return { thinkingTokens: 0 };
  if (written === undefined) return {};
  const tokens = Number(written);
  if (!Number.isSafeInteger(tokens) || tokens < 0)
    throw misuse(`--max-thinking-tokens needs a whole number, but got ${JSON.stringify(written)}.`);
  return { thinkingTokens: tokens };
}
