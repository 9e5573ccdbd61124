import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { type JsonSchema, orNull } from "@retinue/base/foundation/json-schema.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { shellWord } from "@retinue/base/foundation/shell-word.ts";

/** A program of another vendor that works in the place of our loop, over the Agent Client Protocol. Plain data. */
export interface AgentRunner {
  /** The known program that was named, or the first word of the command. */
  readonly name: string;
  /** The program and its arguments, as they are started. */
  readonly command: readonly string[];
  /** Names of variables that it gets of the person's environment, besides those that every program needs. */
  readonly env?: readonly string[];
  /** It starts although rules do not reach what it does without asking. */
  readonly unguarded?: true;
}

/** What a person writes. */
export interface RunnerInput {
  /** A known name, a command line, or a command as a list of words. */
  readonly acp: string | readonly string[];
  readonly env?: readonly string[];
  readonly unguarded?: boolean;
}

/** What is known of a vendor's program. */
export interface KnownRunner {
  readonly command: readonly string[];
  /** How it is installed, for users who do not have it. */
  readonly install: string;
  /** What it does without asking us, as the rest of a sentence. */
  readonly unasked: string;
  /** The mode of it in which it asks for most; absent: the one it starts in. */
  readonly mode?: string;
  /** Folders below the home in which it keeps its state, so that a sandbox leaves them writable. */
  readonly state: readonly string[];
}

export const knownRunners: ReadonlyMap<string, KnownRunner> = new Map<string, KnownRunner>([
  [
    "claude",
    {
      command: ["claude-agent-acp"],
      install: "npm install -g @agentclientprotocol/claude-agent-acp",
      unasked:
        "reads and searches files, runs commands that it considers harmless, and calls tools that its own settings allow",
      mode: "default",
      state: [".claude", ".claude.json"],
    },
  ],
  [
    "codex",
    {
      command: ["codex-acp"],
      install: "npm install -g @agentclientprotocol/codex-acp",
      unasked: "reads files and runs commands inside its own sandbox",
      mode: "read-only",
      state: [".codex"],
    },
  ],
  [
    "gemini",
    {
      command: ["gemini", "--acp"],
      install: "npm install -g @google/gemini-cli",
      unasked: "lists and searches files, and calls tools that its own settings allow",
      mode: "default",
      state: [".gemini"],
    },
  ],
  [
    "qwen",
    {
      command: ["qwen", "--acp"],
      install: "npm install -g @qwen-code/qwen-code",
      unasked: "lists and searches files, and calls tools that its own settings allow",
      mode: "default",
      state: [".qwen"],
    },
  ],
  [
    "opencode",
    {
      command: ["opencode", "acp"],
      install: "npm install -g opencode-ai",
      unasked:
        "reads, changes and runs whatever its own permissions allow, which without settings is nearly everything",
      state: [".local/share/opencode", ".local/state/opencode", ".config/opencode", ".cache/opencode"],
    },
  ],
]);

export type RunnerReading =
  | { readonly type: "runner"; readonly runner: AgentRunner }
  | { readonly type: "unreadable"; readonly reason: string };

export const runnerAdvice = `Write \`runner: { acp: codex }\`, with one of ${[...knownRunners.keys()].join(", ")}, a command line, or a list such as [my-agent, --acp].`;

const maxWords = 100;
const maxVariables = 100;
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/;
const word: JsonSchema = { type: "string", pattern: "^[^\\u0000]*$" };

/** What `readRunner` takes. */
export const runnerSchema: JsonSchema = orNull({
  type: "object",
  properties: {
    acp: {
      anyOf: [
        { type: "string", pattern: "\\S" },
        { type: "array", items: word, minItems: 1, maxItems: maxWords },
      ],
    },
    env: {
      type: "array",
      items: { type: "string", pattern: variableName.source },
      maxItems: maxVariables,
    },
    unguarded: { type: "boolean" },
  },
  required: ["acp"],
  additionalProperties: false,
});

const knownKeys: readonly string[] = ["acp", "env", "unguarded"];

/** Reads `runner`. What cannot be honoured makes the whole unreadable: without it another program would do the work. */
export function readRunner(value: unknown): RunnerReading {
  if (!isRecord(value)) return unreadable(`it is not a mapping with \`acp\`, but ${quote(value)}`);
  const strange = Object.keys(value).find((key) => !knownKeys.includes(key));
  if (strange !== undefined) {
    const nearest = nearestName(strange, knownKeys);
    return unreadable(
      `it has the unknown key ${quote(strange)}${nearest === undefined ? "" : `; did you mean ${nearest}?`}`,
    );
  }
  const { acp, env, unguarded } = value;
  if (unguarded !== undefined && typeof unguarded !== "boolean")
    return unreadable("`unguarded` is neither true nor false");
  const names = readNames(env);
  if (typeof names === "string") return unreadable(names);
  const command = readCommand(acp);
  if (command.type === "unreadable") return command;
  return {
    type: "runner",
    runner: {
      ...command.of,
      ...(names.length === 0 ? {} : { env: names }),
      ...(unguarded === true ? { unguarded } : {}),
    },
  };
}

/** As a person writes it. */
export function runnerInput({ name, command, env, unguarded }: AgentRunner): RunnerInput {
  const isKnown = knownRunners.get(name)?.command.join("\0") === command.join("\0");
  return {
    acp: isKnown ? name : command,
    env,
    unguarded,
  };
}

/** In one line, for people. */
export function describeRunner({ name, command }: AgentRunner): string {
  const line = command.map((each) => (/^-[\w=./-]+$/.test(each) ? each : shellWord(each))).join(" ");
  return name === line ? name : `${name}: ${line}`;
}

type CommandReading =
  | { readonly type: "command"; readonly of: Pick<AgentRunner, "name" | "command"> }
  | Extract<RunnerReading, { readonly type: "unreadable" }>;

function readCommand(acp: unknown): CommandReading {
  if (typeof acp === "string") {
    const known = knownRunners.get(acp.trim());
    if (known !== undefined) return { type: "command", of: { name: acp.trim(), command: known.command } };
    const words = splitWords(acp);
    if (words === undefined)
      return unreadable(
        `\`acp\` is not a plain command line, but ${quote(acp)}; it is not run in a shell, so write a list of words instead`,
      );
    return commandOf(words);
  }
  if (!Array.isArray(acp))
    return unreadable(`\`acp\` is neither a string nor a list of words, but ${quote(acp)}`);
  const words = acp.map((each) => (typeof each === "number" ? String(each) : each));
  if (words.length > maxWords) return unreadable(`\`acp\` has more than ${maxWords} words`);
  const isTexts = words.every((each): each is string => typeof each === "string" && !each.includes("\0"));
  return isTexts ? commandOf(words) : unreadable("a word of `acp` is not a string");
}

function commandOf(words: readonly string[]): CommandReading {
  const [program = ""] = words;
  if (program.trim() === "") return unreadable("`acp` names no program");
  const base = program.split(/[/\\]/).at(-1) ?? program;
  return { type: "command", of: { name: base, command: words } };
}

/** Words separated by spaces, with quotes around those that have some; what a shell would do more is not done here. */
function splitWords(line: string): readonly string[] | undefined {
  if (/[|&;<>$`()*?\\\n\0]/.test(line)) return undefined;
  const words = line.match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? [];
  const isWhole = words.join("").length === line.replace(/\s/g, "").length || /["']/.test(line);
  if (!isWhole || words.length === 0 || words.length > maxWords) return undefined;
  // A quote inside of a word belongs to a shell.
  const rest = line.replace(/"[^"]*"|'[^']*'/g, (quoted, at: number) =>
    /\S/.test(line[at - 1] ?? " ") || /\S/.test(line[at + quoted.length] ?? " ") ? '"' : "",
  );
  return /["']/.test(rest) ? undefined : words.map((each) => each.replace(/^(["'])(.*)\1$/, "$2"));
}

function readNames(env: unknown): readonly string[] | string {
  if (env === undefined || env === null) return [];
  const names = typeof env === "string" ? env.split(",").map((name) => name.trim()) : env;
  if (!Array.isArray(names)) return "`env` is not a list of variable names";
  if (names.length > maxVariables) return `\`env\` names more than ${maxVariables} variables`;
  const flaw = names.find((name) => typeof name !== "string" || !variableName.test(name));
  if (flaw !== undefined)
    return `\`env\` has ${quote(flaw)}, which is not a valid variable name; values stay in the environment`;
  return names;
}

function unreadable(reason: string): Extract<RunnerReading, { readonly type: "unreadable" }> {
  return { type: "unreadable", reason };
}
