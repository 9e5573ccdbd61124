import {
  effortLevels,
  parsePermissionMode,
  permissionModes,
  settingSources,
} from "../../foundation/option-words.ts";
import { amount, count, type OptionEntry, type OptionNeed } from "./option-entry.ts";

const everywhere = "Every command:";

/** Options that hold for every command. */
export const sessionOptions: readonly OptionEntry[] = [
  {
    flags: "--agents <json|file>",
    description: "agents for this run, keyed by name",
    brief: "--agents JSON|FILE",
    group: everywhere,
  },
  {
    flags: "--settings <file|json>",
    description: "more settings",
    brief: "--settings FILE|JSON",
    group: everywhere,
  },
  {
    flags: "--setting-sources <list>",
    description: "which settings to read",
    value: { type: "word-list", words: settingSources },
    brief: "--setting-sources LIST",
    group: everywhere,
  },
  {
    flags: "--plugin-dir <folder>",
    description: "use the plugin in this folder",
    isRepeatable: true,
    brief: "--plugin-dir DIR",
    group: everywhere,
  },
  {
    flags: "--add-dir <folder>",
    description: "also read .claude/agents of this folder",
    isRepeatable: true,
    moreWords: "folders",
    brief: "--add-dir DIR",
    group: everywhere,
  },
  {
    flags: "--disallowed-tools, --disallowedTools <list>",
    description: "deny rules",
    value: { type: "entries" },
    moreWords: "tools",
    brief: "--disallowedTools LIST",
    group: everywhere,
  },
  {
    flags: "--mcp-config <json|file>",
    description: "MCP servers for this run",
    isRepeatable: true,
    brief: "--mcp-config JSON",
    group: everywhere,
  },
  {
    flags: "--strict-mcp-config",
    description: "no MCP servers but those of --mcp-config",
    group: everywhere,
  },
  {
    flags: "--trust",
    description: "trust the working folder for this run",
    brief: "--trust",
    group: everywhere,
  },
  {
    flags: "--verbose",
    description: "with --output-format json: every message, as one list",
    brief: "--verbose",
    group: everywhere,
  },
];

const stream: readonly OptionNeed[] = [{ option: "--output-format", value: "stream-json" }];

const output = "Input and output:";
const outputOptions: readonly OptionEntry[] = [
  { flags: "-p, --print", description: "run the prompt and print the result", group: output },
  {
    flags: "--output-format <format>",
    description: "text, json or stream-json",
    value: { type: "word", words: ["text", "json", "stream-json"] },
    brief: "--output-format text|json|stream-json",
    group: output,
  },
  {
    flags: "--input-format <format>",
    description: "text or stream-json",
    value: { type: "word", words: ["text", "stream-json"] },
    group: output,
  },
  {
    flags: "--include-partial-messages",
    description: "stream-json: also what the model says while it answers",
    needs: stream,
    group: output,
  },
  {
    flags: "--replay-user-messages",
    description: "stream-json: also the prompts",
    needs: stream,
    group: output,
  },
  {
    flags: "--forward-subagent-text",
    description: "stream-json: also what child agents say",
    needs: stream,
    group: output,
  },
];

const agent = "Agent and model:";
const agentOptions: readonly OptionEntry[] = [
  {
    flags: "--model <model>",
    description: "an alias, an id, or provider/model",
    value: { type: "suggested", words: ["opus", "sonnet", "haiku", "offline"] },
    brief: "--model M",
    group: agent,
  },
  {
    flags: "--effort <level>",
    description: "how hard the model thinks",
    value: { type: "word", words: effortLevels },
    brief: "--effort LEVEL",
    group: agent,
  },
  {
    flags: "--agent <name>",
    description: "the agent that answers",
    brief: "--agent NAME",
    group: agent,
  },
];

const rights = "Tools and permissions:";
const rightOptions: readonly OptionEntry[] = [
  {
    flags: "--tools <list>",
    description: 'which built-in tools exist; "" for none',
    moreWords: "tools",
    brief: "--tools LIST",
    group: rights,
  },
  {
    flags: "--allowed-tools, --allowedTools <list>",
    description: "rules that allow calls",
    value: { type: "entries" },
    moreWords: "tools",
    brief: "--allowedTools LIST",
    group: rights,
  },
  {
    flags: "--permission-mode <mode>",
    description: "what happens to calls no rule speaks of",
    value: {
      type: "word",
      words: permissionModes.filter((mode) => mode !== "auto"),
      accepts: (text) => parsePermissionMode(text) !== undefined,
    },
    brief: "--permission-mode MODE",
    group: rights,
  },
  {
    flags: "--permission-prompt-tool <tool>",
    description: "an MCP tool that answers in a person's place",
    group: rights,
  },
  {
    flags: "--dangerously-skip-permissions",
    description: "allow everything that no rule denies",
    brief: "--dangerously-skip-permissions",
    group: rights,
  },
];

const limits = "Limits:";
const limitOptions: readonly OptionEntry[] = [
  {
    flags: "--max-turns <n>",
    description: "the most turns",
    value: count,
    brief: "--max-turns N",
    group: limits,
  },
  {
    flags: "--max-budget-usd <amount>",
    description: "the most it may cost",
    value: amount,
    brief: "--max-budget-usd X",
    group: limits,
  },
  {
    flags: "--max-time <duration>",
    description: "the longest it may work, such as 90s or 10m",
    value: { type: "duration" },
    brief: "--max-time 10m",
    group: limits,
  },
];

const prompts = "Prompts:";
const promptOptions: readonly OptionEntry[] = [
  {
    flags: "--system-prompt <text>",
    description: "in place of the usual system prompt",
    brief: "--system-prompt TEXT",
    group: prompts,
  },
  {
    flags: "--system-prompt-file <file>",
    description: "the same from a file",
    conflicts: ["--system-prompt"],
    group: prompts,
  },
  { flags: "--append-system-prompt <text>", description: "added to the system prompt", group: prompts },
  {
    flags: "--append-system-prompt-file <file>",
    description: "the same from a file",
    conflicts: ["--append-system-prompt"],
    group: prompts,
  },
];

const session = "Session:";
const conversationOptions: readonly OptionEntry[] = [
  {
    flags: "-r, --resume <session>",
    description: "resume a session, by id or title",
    brief: "-r, --resume ID",
    group: session,
  },
  {
    flags: "-c, --continue",
    description: "continue the latest session of this folder",
    brief: "-c, --continue",
    group: session,
  },
  {
    flags: "--fork-session",
    description: "continue in a copy of the session",
    brief: "--fork-session",
    group: session,
  },
  {
    flags: "--take-over",
    description: "take the session from another process that holds it",
    brief: "--take-over",
    group: session,
  },
  {
    flags: "--session-id <uuid>",
    description: "the id of the session",
    brief: "--session-id ID",
    group: session,
  },
  { flags: "--no-session-persistence", description: "keep no transcript", group: session },
  {
    flags: "--disable-slash-commands",
    description: "a prompt such as /name is plain text",
    group: prompts,
  },
  {
    flags: "--json-schema <json|file>",
    description: "the form the result must have",
    brief: "--json-schema JSON|FILE",
    group: output,
  },
  {
    flags: "--plain",
    description: "in a terminal: lines only, for screen readers",
    brief: "--plain",
    group: output,
  },
  {
    flags: "--no-ask",
    description: "ask no one; what would be asked is refused",
    brief: "--no-ask",
    group: rights,
  },
  {
    flags: "--approvals <way>",
    description: "what no one can be asked: wait (see retinue approvals) or refuse",
    value: { type: "word", words: ["wait", "refuse"] },
    group: rights,
  },
];

/** The options of a run carry the names people know from Claude Code. */
export const runOptions: readonly OptionEntry[] = [
  ...outputOptions,
  ...agentOptions,
  ...rightOptions,
  ...limitOptions,
  ...promptOptions,
  ...conversationOptions,
];
