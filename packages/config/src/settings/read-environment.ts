import type { Issue } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, type JsonRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { type JsonSchema, looseWords, schemas } from "@retinue/base/foundation/json-schema.ts";
import { effortLevels } from "@retinue/base/foundation/option-words.ts";

/** Reads one value tolerantly: undefined means it is not what was expected. */
export interface ValueReader<T> {
  readonly expected: string;
  readonly read: (value: unknown) => T | undefined;
  /** Where in a value that it does not take something is wrong, and what. */
  readonly wrongPart?: (value: unknown) => WrongPart | undefined;
  /** What `read` takes, for editors and other programs. */
  readonly schema: JsonSchema;
}

export interface WrongPart {
  readonly path: readonly string[];
  readonly reason: string;
  readonly advice: string;
}

export const flag: ValueReader<boolean> = {
  expected: "true or false",
  read: (value) => {
    if (value === "true") return true;
    if (value === "false") return false;
    return typeof value === "boolean" ? value : undefined;
  },
  schema: schemas.flag,
};

export const text: ValueReader<string> = {
  expected: "a non-empty string",
  read: (value) => (typeof value === "string" && value.trim() !== "" ? value : undefined),
  schema: schemas.text,
};

/** A single text is taken for a list of one. */
export const textList: ValueReader<readonly string[]> = {
  expected: "a list of strings",
  read: (value) => {
    if (typeof value === "string") return [value];
    return Array.isArray(value) && value.every((entry) => typeof entry === "string") ? value : undefined;
  },
  schema: schemas.textList,
};

export const object: ValueReader<JsonRecord> = {
  expected: "an object",
  read: (value) => (isRecord(value) ? value : undefined),
  schema: { type: "object" },
};

export const objectList: ValueReader<readonly JsonRecord[]> = {
  expected: "a list of objects",
  read: (value) => (Array.isArray(value) && value.every(isRecord) ? value : undefined),
  schema: { type: "array", items: { type: "object" } },
};

export const flagOrTextList: ValueReader<boolean | readonly string[]> = {
  expected: "true, false or a list of strings",
  read: (value) => (typeof value === "string" ? undefined : (flag.read(value) ?? textList.read(value))),
  schema: { anyOf: [{ type: "boolean" }, { type: "array", items: { type: "string" } }] },
};

/** A level of effort, or a number for models that take one. */
export const effort: ValueReader<string | number> = {
  expected: `${effortLevels.join(", ")} or a number`,
  read: (value) =>
    typeof value === "number" && Number.isFinite(value)
      ? value
      : effortLevels.find((level) => level === value),
  schema: { anyOf: [{ enum: effortLevels }, { type: "number" }] },
};

export function integer(least: number, most = Number.MAX_SAFE_INTEGER): ValueReader<number> {
  const limit = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  return {
    expected: `a whole number ${limit}`,
    read: (value) => {
      const number = typeof value === "string" && /^\s*[+-]?\d+\s*$/.test(value) ? Number(value) : value;
      return typeof number === "number" && Number.isSafeInteger(number) && number >= least && number <= most
        ? number
        : undefined;
    },
    schema: { anyOf: [{ type: "integer", minimum: least, maximum: most }, schemas.integerText] },
  };
}

export function numberBetween(least: number, most: number): ValueReader<number> {
  return {
    expected: `a number from ${least} to ${most}`,
    read: (value) => {
      const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
      return typeof number === "number" && number >= least && number <= most ? number : undefined;
    },
    schema: { anyOf: [{ type: "number", minimum: least, maximum: most }, schemas.numberText] },
  };
}

/** `"disable"` is the documented word; a file that has true means the same. */
export const disable: ValueReader<"disable"> = {
  expected: '"disable"',
  read: (value) => (flag.read(value) === true || value === "disable" ? "disable" : undefined),
  schema: { anyOf: [{ enum: ["disable", true] }, { type: "string", pattern: "^true$" }] },
};

/** A flag means an object with nothing but `enabled`. */
export const enabledObject: ValueReader<JsonRecord> = {
  expected: "an object",
  read: (value) => {
    const enabled = flag.read(value);
    return enabled === undefined ? object.read(value) : { enabled };
  },
  schema: { anyOf: [{ type: "object" }, schemas.flag] },
};

export function choice<const T extends string>(...choices: readonly T[]): ValueReader<T> {
  return {
    expected: choices.map((each) => `"${each}"`).join(" or "),
    read: (value) => choices.find((each) => each === value),
    schema: { enum: choices },
  };
}

type Member = Pick<ValueReader<unknown>, "expected" | "read">;

/** Finds the first member of an object that is not known, or that its reader does not take. */
function wrongMember(members: Readonly<Record<string, Member>>) {
  const known = Object.keys(members);
  return (value: unknown): WrongPart | undefined => {
    for (const [key, written] of Object.entries(isRecord(value) ? value : {})) {
      const member = Object.hasOwn(members, key) ? members[key] : undefined;
      const path = [key];
      if (member === undefined)
        return {
          path,
          reason: "it is not known",
          advice: `Known are ${known.slice(0, -1).join(", ")} and ${known.at(-1)}.`,
        };
      const { expected, read } = member;
      if (read(written) === undefined)
        return {
          path,
          reason: `it must be ${expected}, but is ${quote(written)}`,
          advice: `Write ${expected}.`,
        };
    }
    return undefined;
  };
}

/** A command whose first line is shown below the prompt of the terminal. */
export interface StatusLineValue {
  readonly type: "command";
  readonly command: string;
  /** Cells before the line. */
  readonly padding?: number;
}

export const statusLine: ValueReader<StatusLineValue> = {
  expected: 'an object with "type": "command" and a "command"',
  read: (value) => {
    if (!isRecord(value) || value["type"] !== "command") return undefined;
    const command = text.read(value["command"]);
    const { padding } = value;
    if (command === undefined || command.trim() === "") return undefined;
    if (padding === undefined) return { type: "command", command };
    const cells = integer(0, 40).read(padding);
    return cells === undefined ? undefined : { type: "command", command, padding: cells };
  },
  schema: {
    type: "object",
    properties: {
      type: { const: "command" },
      command: { type: "string", minLength: 1 },
      padding: { type: "integer", minimum: 0, maximum: 40 },
    },
    required: ["type", "command"],
  },
};

/** What happens to calls where no person can be asked. */
export interface ApprovalsValue {
  readonly mode: "refuse" | "inbox";
  readonly webhook?: {
    readonly url: string;
    /** The environment variable with the key for signatures. */
    readonly secretEnv: string;
  };
}

/** What agents have in the background. */
export interface BackgroundAgentsValue {
  /** Tools of MCP servers stay. */
  readonly mcpTools?: boolean;
  /** Whether the person who attends is asked about what no rule allows. */
  readonly questions?: "ask" | "refuse";
}

/** What cannot be read as a whole is not read in parts: it could leave open what was meant to be closed. */
export const backgroundAgents: ValueReader<BackgroundAgentsValue> = {
  wrongPart: wrongMember({ mcpTools: flag, questions: choice("ask", "refuse") }),
  expected: '{"mcpTools": true or false, "questions": "ask" or "refuse"}',
  read(value) {
    if (!isRecord(value)) return undefined;
    const { mcpTools: written, questions, ...others } = value;
    const mcpTools = flag.read(written);
    if (Object.keys(others).length > 0 || (written !== undefined && mcpTools === undefined)) return undefined;
    if (questions !== undefined && questions !== "ask" && questions !== "refuse") return undefined;
    return {
      mcpTools,
      questions,
    };
  },
  schema: {
    type: "object",
    properties: { mcpTools: schemas.flag, questions: { enum: ["ask", "refuse"] } },
    additionalProperties: false,
  },
};

/** What happens where the quota of a provider is used up. */
export interface QuotaValue {
  /** Agents hand in what they have, wait for a new quota, and continue. */
  readonly wait: boolean;
  /** US dollars that agents may take after such a wait, until there is another prompt. */
  readonly maxUsdUnattended?: number;
}

const aboveZero: Member = {
  expected: "a number above 0",
  read: (value) => (typeof value === "number" && value > 0 && Number.isFinite(value) ? value : undefined),
};

/** Half of it would leave agents waiting without a ceiling, or with one that holds for nothing. */
export const quota: ValueReader<QuotaValue> = {
  wrongPart: wrongMember({ wait: flag, maxUsdUnattended: aboveZero }),
  expected: '{"wait": true or false, "maxUsdUnattended": a number above 0}',
  read(value) {
    if (!isRecord(value)) return undefined;
    const { wait: written, maxUsdUnattended: most, ...others } = value;
    const wait = flag.read(written);
    if (wait === undefined || Object.keys(others).length > 0) return undefined;
    if (most === undefined) return { wait };
    return typeof most === "number" && aboveZero.read(most) !== undefined
      ? { wait, maxUsdUnattended: most }
      : undefined;
  },
  schema: {
    type: "object",
    properties: { wait: schemas.flag, maxUsdUnattended: { type: "number", exclusiveMinimum: 0 } },
    required: ["wait"],
    additionalProperties: false,
  },
};

/** A mode, or an object with a mode and a webhook. */
export const approvals: ValueReader<ApprovalsValue> = {
  wrongPart: wrongMember({ mode: choice("refuse", "inbox"), webhook: object }),
  expected:
    '"refuse", "inbox", or {"mode": "inbox", "webhook": {"url": "https://…", "secretEnv": "VARIABLE"}}; http only to this machine',
  read(value) {
    if (value === "refuse" || value === "inbox") return { mode: value };
    if (!isRecord(value)) return undefined;
    const { mode = "inbox", webhook, ...others } = value;
    if ((mode !== "refuse" && mode !== "inbox") || Object.keys(others).length > 0) return undefined;
    if (webhook === undefined) return { mode };
    if (!isRecord(webhook)) return undefined;
    const { url, secretEnv, ...more } = webhook;
    const isWhole = isWebhookUrl(url) && typeof secretEnv === "string" && /^\w+$/.test(secretEnv);
    return isWhole && Object.keys(more).length === 0 ? { mode, webhook: { url, secretEnv } } : undefined;
  },
  schema: {
    anyOf: [
      { enum: ["refuse", "inbox"] },
      {
        type: "object",
        properties: {
          mode: { enum: ["refuse", "inbox"] },
          webhook: {
            type: "object",
            properties: {
              url: { type: "string", pattern: "^\\s*[hH][tT][tT][pP][sS]?:" },
              secretEnv: { type: "string", pattern: "^\\w+$" },
            },
            required: ["url", "secretEnv"],
            additionalProperties: false,
          },
        },
        additionalProperties: false,
      },
    ],
  },
};

/** Above which quotes a batch of agents is asked about before it starts; with neither they are only kept. */
export interface QuoteSettings {
  readonly askAboveUsd?: number;
  readonly askAboveAgents?: number;
}

export const quotes: ValueReader<QuoteSettings> = {
  expected: '{"askAboveUsd": 2, "askAboveAgents": 20}, with numbers from 0 and nothing else',
  read(value) {
    if (!isRecord(value)) return undefined;
    // Each part was looked at.
    return wrongQuote(value) === undefined ? (value as QuoteSettings) : undefined;
  },
  wrongPart: (value) => (isRecord(value) ? wrongQuote(value) : undefined),
  schema: {
    type: "object",
    properties: {
      askAboveUsd: {
        description: "US dollars that a batch of agents may be expected to cost without being asked about.",
        type: "number",
        minimum: 0,
      },
      askAboveAgents: {
        description: "How many agents may start in one turn without being asked about.",
        type: "integer",
        minimum: 0,
      },
    },
    additionalProperties: false,
  },
};

function wrongQuote(value: JsonRecord): WrongPart | undefined {
  const isAmount = (part: unknown): boolean =>
    part === undefined || (typeof part === "number" && Number.isFinite(part) && part >= 0);
  for (const [key, part] of Object.entries(value)) {
    if (key !== "askAboveUsd" && key !== "askAboveAgents")
      return { path: [key], reason: "there is no such key", advice: `Write ${quotes.expected}.` };
    if (!isAmount(part) || (key === "askAboveAgents" && part !== undefined && !Number.isSafeInteger(part))) {
      const kind = key === "askAboveAgents" ? "whole number" : "number";
      return { path: [key], reason: `it is not a ${kind} from 0`, advice: `Write ${quotes.expected}.` };
    }
  }
  return undefined;
}

function isWebhookUrl(value: unknown): value is string {
  if (typeof value !== "string" || !URL.canParse(value)) return false;
  const { protocol, hostname } = new URL(value);
  if (protocol === "https:") return true;
  return protocol === "http:" && ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
}

/** What runs of workflows may take. */
export interface WorkflowsValue {
  /** How many of its agents work concurrently. */
  readonly agents?: number;
  /** How many equal failures in a row end a phase. */
  readonly breaker?: number;
  readonly maxBudgetUsd?: number;
  readonly maxTokens?: number;
  /** What a script reads as `budget.total`. */
  readonly maxOutputTokens?: number;
}

const workflowNumbers = {
  agents: integer(1, 1000),
  breaker: integer(1),
  maxBudgetUsd: numberBetween(Number.MIN_VALUE, Number.MAX_SAFE_INTEGER),
  maxTokens: integer(1),
  maxOutputTokens: integer(1),
} as const satisfies Readonly<Record<keyof WorkflowsValue, ValueReader<number>>>;

/** A limit that cannot be read is not left out: the whole value is refused. */
export const workflows: ValueReader<WorkflowsValue> = {
  wrongPart: wrongMember(workflowNumbers),
  expected: `an object with ${Object.keys(workflowNumbers).join(", ")}, each a number above 0`,
  read(value) {
    if (!isRecord(value)) return undefined;
    const read = Object.entries(value).map(([key, given]) => {
      const reader = Object.hasOwn(workflowNumbers, key)
        ? workflowNumbers[key as keyof WorkflowsValue]
        : undefined;
      return [key, reader?.read(given)] as const;
    });
    return read.some(([, number]) => number === undefined) ? undefined : Object.fromEntries(read);
  },
  schema: {
    type: "object",
    properties: Object.fromEntries(Object.entries(workflowNumbers).map(([key, { schema }]) => [key, schema])),
    additionalProperties: false,
  },
};

/** As people set variables: `1`, `true`, `yes`, `on` and their opposites. */
const toggle: ValueReader<boolean> = {
  expected: "1 or 0",
  read: (value) => {
    const word = typeof value === "string" ? value.trim().toLowerCase() : "";
    if (["1", "true", "yes", "on"].includes(word)) return true;
    return ["0", "false", "no", "off"].includes(word) ? false : undefined;
  },
  schema: looseWords(["1", "true", "yes", "on", "0", "false", "no", "off"]),
};

const percent: ValueReader<number> = {
  expected: "a percentage above 0 and up to 100",
  read: (value) => {
    const bare = typeof value === "string" ? value.trim().replace(/%$/, "") : value;
    const number = numberBetween(0, 100).read(bare);
    return number === 0 ? undefined : number;
  },
  schema: { anyOf: [{ type: "number", exclusiveMinimum: 0, maximum: 100 }, { type: "string" }] },
};

/** When the tools of MCP servers are loaded on demand: always, never, or when they take more than a part of the window. */
export type ToolSearchMode = "always" | "never" | { readonly abovePercent: number };

const toolSearch: ValueReader<ToolSearchMode> = {
  expected: "true, false, auto, or auto:PERCENT with a number from 0 to 100",
  read: (value) => {
    const isOn = toggle.read(value);
    if (isOn !== undefined) return isOn ? "always" : "never";
    const [, given = "10"] = /^\s*auto(?::(\d{1,3}(?:\.\d+)?))?\s*$/i.exec(String(value)) ?? [undefined, ""];
    const abovePercent = given === "" ? undefined : numberBetween(0, 100).read(given);
    return abovePercent === undefined ? undefined : { abovePercent };
  },
  schema: { type: "string" },
};

const milliseconds = integer(0);
const count = integer(1);

/** The variables this product obeys: the option's name, the variable, and how it is read. */
const variables = {
  apiKey: ["ANTHROPIC_API_KEY", text],
  authToken: ["ANTHROPIC_AUTH_TOKEN", text],
  baseUrl: ["ANTHROPIC_BASE_URL", text],
  model: ["ANTHROPIC_MODEL", text],
  defaultModel: ["ANTHROPIC_DEFAULT_MODEL", text],
  opusModel: ["ANTHROPIC_DEFAULT_OPUS_MODEL", text],
  sonnetModel: ["ANTHROPIC_DEFAULT_SONNET_MODEL", text],
  haikuModel: ["ANTHROPIC_DEFAULT_HAIKU_MODEL", text],
  fableModel: ["ANTHROPIC_DEFAULT_FABLE_MODEL", text],
  customHeaders: ["ANTHROPIC_CUSTOM_HEADERS", text],
  entrypoint: ["CLAUDE_CODE_ENTRYPOINT", text],
  subagentModel: ["CLAUDE_CODE_SUBAGENT_MODEL", text],
  subagentModelForced: ["CLAUDE_CODE_SUBAGENT_MODEL_FORCE", toggle],
  maxConcurrentSubagents: ["CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", count],
  maxSpawnDepth: ["CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH", count],
  maxToolUseConcurrency: ["CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY", count],
  backgroundTasksDisabled: ["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", toggle],
  autoBackgroundTasks: ["CLAUDE_AUTO_BACKGROUND_TASKS", toggle],
  agentStallTimeoutMs: ["CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS", milliseconds],
  printBackgroundWaitMs: ["CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", milliseconds],
  explorePlanAgentsDisabled: ["CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS", toggle],
  builtinAgentsDisabled: ["CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS", toggle],
  forkSubagent: ["CLAUDE_CODE_FORK_SUBAGENT", toggle],
  forwardSubagentText: ["CLAUDE_CODE_FORWARD_SUBAGENT_TEXT", toggle],
  subagentPromptCacheTtl: ["CLAUDE_CODE_SUBAGENT_PROMPT_CACHE_TTL", choice("auto", "5m", "1h")],
  autoCompactPercent: ["CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", percent],
  autoCompactWindow: ["CLAUDE_CODE_AUTO_COMPACT_WINDOW", integer(100_000, 1_000_000)],
  autoCompactDisabled: ["DISABLE_AUTO_COMPACT", toggle],
  compactDisabled: ["DISABLE_COMPACT", toggle],
  autoMemoryDisabled: ["CLAUDE_CODE_DISABLE_AUTO_MEMORY", toggle],
  claudeMdDisabled: ["CLAUDE_CODE_DISABLE_CLAUDE_MDS", toggle],
  additionalDirectoriesClaudeMd: ["CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", toggle],
  tasksEnabled: ["CLAUDE_CODE_ENABLE_TASKS", toggle],
  taskListId: ["CLAUDE_CODE_TASK_LIST_ID", text],
  agentTeams: ["CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", toggle],
  workflowsDisabled: ["CLAUDE_CODE_DISABLE_WORKFLOWS", toggle],
  bundledSkillsDisabled: ["CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", toggle],
  teamTeardownTimeoutMs: ["CLAUDE_CODE_TEAM_TEARDOWN_PARK_TIMEOUT_MS", milliseconds],
  stopHookBlockCap: ["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", integer(0)],
  sessionEndHooksTimeoutMs: ["CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", milliseconds],
  temporaryDirectory: ["CLAUDE_CODE_TMPDIR", text],
  // No timer waits longer.
  apiTimeoutMs: ["API_TIMEOUT_MS", integer(1, 2_147_483_647)],
  maxRetries: ["CLAUDE_CODE_MAX_RETRIES", integer(0, 15)],
  bashDefaultTimeoutMs: ["BASH_DEFAULT_TIMEOUT_MS", count],
  bashMaxTimeoutMs: ["BASH_MAX_TIMEOUT_MS", count],
  bashMaxOutputLength: ["BASH_MAX_OUTPUT_LENGTH", count],
  credentialsKeptBack: ["CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", toggle],
  mcpTimeoutMs: ["MCP_TIMEOUT", count],
  mcpToolTimeoutMs: ["MCP_TOOL_TIMEOUT", count],
  maxMcpOutputTokens: ["MAX_MCP_OUTPUT_TOKENS", count],
  toolSearch: ["ENABLE_TOOL_SEARCH", toolSearch],
  experimentalBetasDisabled: ["CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", toggle],
  maxStructuredOutputRetries: ["MAX_STRUCTURED_OUTPUT_RETRIES", integer(0)],
  promptHistorySkipped: ["CLAUDE_CODE_SKIP_PROMPT_HISTORY", toggle],
  bareMode: ["CLAUDE_CODE_SIMPLE", toggle],
  safeMode: ["CLAUDE_CODE_SAFE_MODE", toggle],
  localModels: ["RETINUE_LOCAL_MODELS", toggle],
} as const satisfies Readonly<Record<string, readonly [string, ValueReader<unknown>]>>;

/** What each variable takes, by its name. */
export const environmentVariables: ReadonlyMap<string, ValueReader<unknown>> = new Map(
  Object.values<readonly [string, ValueReader<unknown>]>(variables),
);

/** What the variables that steer this product say. */
export type EnvironmentOptions = {
  readonly [Option in keyof typeof variables]?: (typeof variables)[Option] extends readonly [
    string,
    ValueReader<infer Value>,
  ]
    ? Value
    : never;
};

interface EnvironmentReading {
  readonly options: EnvironmentOptions;
  readonly issues: readonly Issue[];
}

/** Reads the variables that steer this product. An empty variable counts as not set; a bad value is reported and left out. */
export function readEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
): EnvironmentReading {
  const options: [string, unknown][] = [];
  const issues: Issue[] = [];
  for (const [option, [name, reader]] of Object.entries<readonly [string, ValueReader<unknown>]>(variables)) {
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
    if (value === undefined || value.trim() === "") continue;
    const read = reader.read(value);
    if (read === undefined) issues.push(badValue(name, reader.expected, value));
    else options.push([option, read]);
  }
  // Each value comes from the reader that gives EnvironmentOptions the type of its option.
  return { options: Object.fromEntries(options) as EnvironmentOptions, issues };
}

function badValue(name: string, expected: string, value: string): Issue {
  return {
    severity: "warning",
    code: "bad-environment-value",
    message: `The environment variable ${name} must be ${expected}, but it is ${quote(value)}; it was not used.`,
    advice: `Set ${name} to ${expected}, or unset it.`,
    path: [name],
  };
}
