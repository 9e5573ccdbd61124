import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";
import type { SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { type Command, Option } from "commander";
import { addOptions } from "./add-options.ts";
import { checkRules, programFlags, type RunFlags } from "./flags.ts";
import { misuse } from "./misuse.ts";
import { longName, namesOf, type OptionEntry } from "./option-entry.ts";

/** Taken without an effect, and named in a note: about browsers, editors, accounts and displays. */
const withoutEffect: readonly string[] = [
  "--chrome",
  "--no-chrome",
  "--ide",
  "--mcp-debug",
  "--debug-to-stderr",
  "--remote-control [name]",
  "--remote-control-session-name-prefix <prefix>",
  "--brief",
  "--system-prompt-snapshot <mode>",
  "--teammate-mode <mode>",
  "--ax-screen-reader",
  "--prompt-suggestions [value]",
  "--thinking-display <mode>",
  "--exclude-dynamic-system-prompt-sections",
  "--enable-auto-mode",
  "--enable-lsp-logging",
  "--workload <name>",
];

const cloud = "there are no sessions in the cloud here";
const setUp = "the event Setup does not happen here; run the command yourself";

/** Refused, because something else would happen than was asked for. */
const refused: readonly (readonly [flags: string, reason: string])[] = [
  ["--project-config-root <folder>", "the project is the folder it is started in"],
  ["--tmux [mode]", "start it in a tmux session of your own"],
  ["--teleport [session]", cloud],
  ["--remote [description]", cloud],
  ["--cloud [description]", cloud],
  ["--environment <id>", cloud],
  ["--from-pr [value]", "sessions are not linked to pull requests here; use --resume with the title"],
  ["--file <spec...>", "files are not downloaded at the start; name them in the prompt"],
  ["--desktop", "there is no desktop app here"],
  ["--restricted", "use --tools, --setting-sources= and --strict-mcp-config for the parts of it"],
  ["--init", setUp],
  ["--init-only", setUp],
  ["--maintenance", setUp],
  ["--plugin-url <url...>", "plugins are loaded from folders; download it and use --plugin-dir"],
  ["--advisor <model>", "there is no advisor tool here"],
  ["--autocompact <when>", "set CLAUDE_CODE_AUTO_COMPACT_WINDOW"],
  ["--channels <list...>", "there are no channels here"],
  ["--dangerously-load-development-channels <list...>", "there are no channels here"],
  ["--rewind-files <uuid>", "files are put back by rewindFiles of the SDK while the session runs"],
  ["--sdk-url <url>", "a host speaks over stdin and stdout"],
  ["--prefill <text>", "a prompt is not edited before it is sent"],
];

/** Adds the flags of programs, those without an effect, and those that are refused; help shows none of them. */
export function addAgentSdkOptions(program: Command): void {
  const entries: readonly OptionEntry[] = [
    ...Object.values(programFlags),
    ...withoutEffect.map((flags) => ({ flags, description: "" })),
    ...refused.map(([flags, description]) => ({ flags, description })),
  ];
  addOptions(
    program,
    entries.map((entry) => ({ ...entry, isHidden: true })),
  );
}

export interface CheckedSdkOptions {
  readonly thinkingTokens?: number;
  readonly taskBudget?: number;
  /** What has no effect, each as one sentence. */
  readonly notes: readonly string[];
}

/** What these options set for the session itself. */
export function sdkSessionOptions(options: RunFlags): SessionOptions {
  const { resumeSessionAt, resumeDropsTurn } = options;
  return {
    mentions: true,
    resumeAt: resumeSessionAt,
    resumeDrops: resumeDropsTurn,
  };
}

/** Refuses what cannot be honoured, and reads the rest. */
export function checkAgentSdkOptions(
  options: RunFlags,
  { isForProgram }: { readonly isForProgram: boolean },
): CheckedSdkOptions {
  const given = new Map(Object.entries(options));
  const isGiven = (flags: string): boolean => {
    const value = given.get(attributeOf(flags));
    return value !== undefined && (value === false) === flags.startsWith("--no-");
  };
  const [flags, reason] = refused.find(([each]) => isGiven(each)) ?? [];
  if (flags !== undefined) throw misuse(`${firstName(flags)} is not supported: ${reason}.`);
  const stray = Object.values(programFlags).find(
    (flag) => flag.isForPrograms === true && isGiven(flag.flags),
  );
  if (stray !== undefined && !isForProgram)
    throw misuse(`${longName(stray)} has no meaning without --output-format stream-json.`);
  if (options.permissionPrompts !== undefined && !["host", "none"].includes(options.permissionPrompts))
    throw misuse(`Invalid --permission-prompts "${options.permissionPrompts}". Write one of host, none.`);
  const notes = withoutEffect.filter(isGiven).map((each) => `${firstName(each)} has no effect here.`);
  return { ...readThinking(options), ...readTaskBudget(options), notes };
}

/** What the organisation of a host restricts beyond the files of this machine. */
export interface ManagedRules {
  readonly deny: readonly string[];
  readonly ask: readonly string[];
  readonly mayBypass: boolean;
}

/** Reads `--managed-settings`. What would allow something, or is not known, is refused by its name. */
export function readManagedSettings(text: string | undefined): ManagedRules {
  if (text === undefined) return { deny: [], ask: [], mayBypass: true };
  const { value, diagnostic } = parseJsonDocument(text, "--managed-settings");
  if (diagnostic !== undefined || !isRecord(value)) throw misuse("--managed-settings must be a JSON object.");
  const { permissions = {}, ...others } = value;
  if (!isRecord(permissions)) throw misuse("permissions of --managed-settings must be an object.");
  const { deny, ask, disableBypassPermissionsMode: bypass, ...more } = permissions;
  const [unknown] = [...Object.keys(others), ...Object.keys(more).map((key) => `permissions.${key}`)];
  if (unknown !== undefined)
    throw misuse(
      `--managed-settings cannot honour ${unknown}.`,
      "It takes permissions.deny, ask and disableBypassPermissionsMode.",
    );
  return { deny: readRules("deny", deny), ask: readRules("ask", ask), mayBypass: bypass !== "disable" };
}

function readRules(list: "deny" | "ask", value: unknown): readonly string[] {
  if (value === undefined) return [];
  const rules = Array.isArray(value) ? value.map(String) : [String(value)];
  checkRules("--managed-settings", list, rules);
  return rules;
}

function firstName(flags: string): string {
  return namesOf(flags).find((name) => name.startsWith("--")) ?? flags;
}

/** The name under which commander keeps the value. */
function attributeOf(flags: string): string {
  return new Option(flags).attributeName();
}

function readTaskBudget({ taskBudget }: RunFlags): { readonly taskBudget?: number } {
  if (taskBudget === undefined) return {};
  const tokens = Number(taskBudget);
  if (!Number.isSafeInteger(tokens) || tokens <= 0)
    throw misuse(`--task-budget needs a number of tokens, but got ${JSON.stringify(taskBudget)}.`);
  return { taskBudget: tokens };
}

function readThinking({ thinking, maxThinkingTokens: written }: RunFlags): {
  readonly thinkingTokens?: number;
} {
  const modes = ["adaptive", "disabled", "enabled"];
  if (thinking !== undefined && !modes.includes(thinking))
    throw misuse(`Invalid --thinking "${thinking}". Expected one of: ${modes.join(", ")}.`);
  if (thinking === "disabled") return { thinkingTokens: 0 };
  if (written === undefined) return {};
  const tokens = Number(written);
  if (!Number.isSafeInteger(tokens) || tokens < 0)
    throw misuse(`--max-thinking-tokens needs a whole number, but got ${JSON.stringify(written)}.`);
  return { thinkingTokens: tokens };
}
