import type { DocumentPath, Issue, Place } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { type JsonSchema, orNull, schemas } from "@retinue/base/foundation/json-schema.ts";
import { effortLevels } from "@retinue/base/foundation/option-words.ts";
import {
  isWiderMode,
  type PermissionMode,
  parseModeLoosely,
  permissionModes,
} from "@retinue/gate/permission-policy.ts";
import { type HookRule, readHooks } from "../hooks/read-hooks.ts";
import { type AgentLimits, readAgentLimits } from "../settings/agent-limits.ts";
import {
  readVerifyChecks,
  type VerifyChecks,
  verifyAdvice,
  verifySchema,
} from "../settings/verify-checks.ts";
import { type AgentRunner, readRunner, runnerAdvice, runnerSchema } from "./agent-runner.ts";
import type { AgentSource } from "./agent-source.ts";
import { booleanWords, fieldSchemas } from "./field-schemas.ts";
import { type OwnVariables, readVariables, refuseVariable, variablesSchema } from "./own-variables.ts";
import type { FrontmatterField } from "./read-frontmatter.ts";
import { readDisallowedTools, readTools } from "./read-tool-list.ts";

export type MemoryScope = "user" | "project" | "local";

/** An MCP server of a definition: one that is configured elsewhere, or one of its own. */
export type AgentMcpServer =
  | { readonly type: "reference"; readonly name: string; readonly tools?: readonly string[] | undefined }
  | { readonly type: "inline"; readonly name: string; readonly config: Readonly<Record<string, unknown>> };

/** What was in the file for one field, before it was understood. */
export interface WrittenField {
  readonly key: string;
  readonly value: unknown;
  readonly place?: Place | undefined;
}

/** What a program's definition may compute when the agent is started. */
export interface PromptContext {
  readonly agent: string;
  readonly task: string;
  readonly directory: string;
}

/** How an agent's run ended, as requested to its definition. */
export interface AgentEnding {
  readonly agent: string;
  readonly agentId: string;
  readonly status: string;
  readonly text: string;
}

/** The parts of a program's definition that are code; files never have them. */
export interface AgentBehaviour {
  readonly computePrompt?: ((context: PromptContext) => string | Promise<string>) | undefined;
  readonly onEnd?: ((ending: AgentEnding) => void | Promise<void>) | undefined;
}

/** One agent type: what it is for, what it may do, how it should behave. Plain data but for `behaviour`. */
export interface AgentDefinition {
  readonly name: string;
  /** The delegation signal. Empty only in plugin files that have none. */
  readonly description: string;
  readonly prompt: string;
  /** Entries as written; absent means all of the parent's tools, empty means none. */
  readonly tools?: readonly string[] | undefined;
  readonly disallowedTools?: readonly string[] | undefined;
  /** As written: an alias, a full id, `provider/model` or `inherit`. */
  readonly model?: string | undefined;
  readonly permissionMode?: PermissionMode | undefined;
  readonly maxTurns?: number | undefined;
  readonly skills?: readonly string[] | undefined;
  readonly mcpServers?: readonly AgentMcpServer[] | undefined;
  readonly hooks?: readonly HookRule[] | undefined;
  readonly memory?: MemoryScope | undefined;
  readonly color?: string | undefined;
  readonly background?: boolean | undefined;
  readonly effort?: string | number | undefined;
  /** `worktree`, or another word that a spawn must refuse rather than ignore. */
  readonly isolation?: string | undefined;
  readonly initialPrompt?: string | undefined;
  readonly omitClaudeMd?: boolean | undefined;
  readonly criticalSystemReminder_EXPERIMENTAL?: string | undefined;
  readonly forkContext?: boolean | undefined;
  /** Only in built-in agents that promise to change nothing: their commands only read, whatever rules and modes allow. */
  readonly onlyReads?: true | undefined;
  /** What it may take; a field of this product alone. */
  readonly limits?: AgentLimits | undefined;
  /** The folder it starts in, inside those of its parent; a field of this product alone. */
  readonly cwd?: string | undefined;
  /** Variables for its commands; a field of this product alone. */
  readonly env?: OwnVariables | undefined;
  /** The most seconds it may take; a field of this product alone. */
  readonly timeout?: number | undefined;
  /** Commands that the runtime runs after its last turn; a field of this product alone. */
  readonly verify?: VerifyChecks | undefined;
  /** The program of another vendor that does its work; a field of this product alone. */
  readonly runner?: AgentRunner | undefined;
  readonly source: AgentSource;
  readonly behaviour?: AgentBehaviour | undefined;
  /** Every field of the file by its canonical name, so that tools can say where a value came from. */
  readonly written: Readonly<Record<string, WrittenField>>;
}

export interface FieldReport {
  readonly report: (severity: "warning" | "note", code: string, message: string, advice?: string) => void;
  readonly unreadable: (reason: string) => undefined;
  readonly issues: Issue[];
}

export interface FieldReader {
  /** What to write, as one sentence for the person. */
  readonly expected: string;
  readonly read: (field: FrontmatterField, to: FieldReport) => unknown;
  /** What `read` takes without a warning. References are to the definitions of config/schemas. */
  readonly schema: JsonSchema;
}

/** Everything there is to know of a field but what it does: that is decided where plans are made. */
interface DefinitionField extends FieldReader {
  /** The row of the table in docs/definitions.md: the values, the meaning, and what holds without the field. */
  readonly docs: readonly [takes: string, means: string, without: string];
  /** It limits what the agent may do: present but unreadable, it makes the file an error instead of a guess. */
  readonly restricts?: true;
  /** Plugins are other people's code: they may not run commands, start servers or widen permissions. */
  readonly notInPlugins?: true;
  /** A text, in which a line that looks like `user: …` belongs to it. */
  readonly isProse?: true;
  /** It has nested keys, which are never guessed from text. */
  readonly isNested?: true;
  /** Every entry takes something away or guards it, so those of all spellings hold. */
  readonly addsUp?: true;
  /** Of two values in one file, the one that holds; the later one where this is absent. */
  readonly narrower?: (earlier: unknown, later: unknown) => unknown;
  /** Other words people write for it, without case, hyphens and underscores. */
  readonly spellings?: string;
  /** What `retinue agents show` says where it is not written. */
  readonly shownDefault?: string;
  /** Plans do not show it as decided by the definition alone: a call or the settings may set it too, or it is no part of a plan. */
  readonly decidedElsewhere?: true;
}

const memoryScopes: readonly MemoryScope[] = ["user", "project", "local"];

/** Every field a definition may have, in the order in which they are shown. Readers take every shape that real files use. */
export const definitionFields = {
  name: {
    expected: "Write `name: my-agent`.",
    read: readName,
    schema: fieldSchemas.name,
    docs: [
      "text",
      "identifies the agent; lower-case letters, digits and hyphens are advised",
      "the file's name, with a warning",
    ],
    decidedElsewhere: true,
  },
  description: {
    expected: "Write `description: …` as one text.",
    read: readDescription,
    schema: fieldSchemas.description,
    docs: [
      "text",
      "what it does, when to use it, what it is not for; a model decides by this text alone",
      "the file does not load",
    ],
    isProse: true,
    decidedElsewhere: true,
  },
  tools: {
    expected: "Write a list, such as `tools: Read, Grep, Glob`.",
    read: readTools,
    schema: fieldSchemas.toolList,
    docs: [
      "list",
      "the tools it has, optionally restricted: `Bash(git *)` ([tools](tools.md))",
      "all of its parent's tools",
    ],
    restricts: true,
    narrower: inBoth,
    spellings: "allowedtools allowtools toolsallowed availabletools",
    shownDefault: "all of its parent's",
    decidedElsewhere: true,
  },
  disallowedTools: {
    expected: "Write a list, such as `disallowedTools: Write, Edit`.",
    read: readDisallowedTools,
    schema: orNull(fieldSchemas.toolList),
    docs: ["list", "tools it does not have; takes precedence over `tools`", "nothing"],
    restricts: true,
    addsUp: true,
    spellings:
      "disallowed disallowtools toolsdisallowed deniedtools denytools toolsdenied disabledtools excludedtools excludetools " +
      "forbiddentools blockedtools",
  },
  model: {
    expected: "Write an alias (sonnet, opus, haiku, inherit), a model id, or `provider/model`.",
    read: readWord,
    schema: fieldSchemas.word,
    docs: ["text", "alias, id, `provider/model` or `inherit` ([models](models.md))", "`inherit`"],
    shownDefault: "inherit: the model of its parent",
    decidedElsewhere: true,
  },
  permissionMode: {
    expected: `Write one of ${permissionModes.join(", ")}.`,
    read: readMode,
    schema: orNull({ enum: [...permissionModes, "manual"] }),
    docs: [
      "`default` `acceptEdits` `plan` `dontAsk` `bypassPermissions` `delegate` `auto` (`manual` is `default`)",
      "what happens to calls that no rule matches",
      "its parent's",
    ],
    restricts: true,
    notInPlugins: true,
    narrower: narrowerMode,
    shownDefault: "that of its parent",
    decidedElsewhere: true,
  },
  maxTurns: {
    expected: "Write a whole number from 1, such as `maxTurns: 30`.",
    read: readTurns,
    schema: { anyOf: [{ type: "integer", minimum: 1 }, schemas.numberText, schemas.null] },
    docs: ["whole number from 1", "maximum number of turns (model answers)", "50"],
    shownDefault: "50",
    decidedElsewhere: true,
  },
  skills: {
    expected: "Write a list of skill names.",
    read: readNames,
    schema: fieldSchemas.names,
    docs: ["list", "skills whose text it starts with", "none"],
  },
  mcpServers: {
    expected: "Write a list of server names or `name: {command: …}` entries.",
    read: readServers,
    schema: fieldSchemas.servers,
    docs: [
      "list of names or `name: config`, or a mapping",
      "[MCP servers](mcp.md#what-a-definition-can-say): by name, restricted, or its own",
      "its parent's",
    ],
    notInPlugins: true,
    isNested: true,
    spellings: "mcpserver",
  },
  hooks: {
    expected: "Write `hooks:` with events below it, as in settings.json.",
    read: readHooksField,
    schema: orNull(fieldSchemas.hooks),
    docs: [
      "as in settings",
      "hooks that run on events of this agent ([settings](settings.md#hooks))",
      "none",
    ],
    restricts: true,
    notInPlugins: true,
    isNested: true,
    addsUp: true,
  },
  memory: {
    expected: "Write user, project or local.",
    read: readMemory,
    schema: orNull({ enum: memoryScopes }),
    docs: [
      "`user` `project` `local`",
      "a directory to keep [notes](memory.md) in; adds Read, Write and Edit there",
      "none",
    ],
  },
  color: {
    expected: "Write a colour name.",
    read: readWord,
    schema: fieldSchemas.word,
    docs: ["red blue green yellow purple orange pink cyan", "display only", "chosen"],
    spellings: "colour",
  },
  background: {
    expected: "Write true or false.",
    read: readBoolean,
    schema: fieldSchemas.flag,
    docs: ["true or false", "it always runs in the background", "false"],
    decidedElsewhere: true,
  },
  effort: {
    expected: "Write low, medium, high, xhigh, max or a number.",
    read: readEffort,
    schema: fieldSchemas.effort,
    docs: [
      "`low` `medium` `high` `xhigh` `max` or a number",
      "reasoning effort of the model",
      "the session's",
    ],
    decidedElsewhere: true,
  },
  isolation: {
    expected: "Write `isolation: worktree`, or leave it out.",
    read: readIsolation,
    schema: fieldSchemas.isolation,
    docs: ["`worktree`", "it works in its own git worktree", "none"],
    restricts: true,
    decidedElsewhere: true,
  },
  initialPrompt: {
    expected: "Write one text.",
    read: readText,
    schema: fieldSchemas.prose,
    docs: ["text", "first message when it is the main agent", "none"],
    notInPlugins: true,
    isProse: true,
    decidedElsewhere: true,
  },
  omitClaudeMd: {
    expected: "Write true or false.",
    read: readBoolean,
    schema: fieldSchemas.flag,
    docs: ["true or false", "it does not get the CLAUDE.md files", "false"],
  },
  criticalSystemReminder_EXPERIMENTAL: {
    expected: "Write one text.",
    read: readText,
    schema: fieldSchemas.prose,
    docs: ["text", "repeated to it on every turn", "none"],
    isProse: true,
    spellings: "criticalsystemreminder",
  },
  forkContext: {
    expected: "Write true or false.",
    read: readBoolean,
    schema: fieldSchemas.flag,
    docs: ["true or false", "it sees its parent's conversation so far", "false"],
  },
  limits: {
    expected: "Write `limits:` with lines such as `seconds: 900` or `usd: 0.5` below it.",
    read: readLimits,
    schema: orNull(fieldSchemas.limits),
    docs: [
      "`seconds` `tokens` `usd` `toolCalls` `toolSeconds` `silenceSeconds` `repeatedCalls` below it",
      "limits on time, tokens, cost and calls ([limits](limits.md)); only in Retinue",
      "as set in the settings",
    ],
    isNested: true,
    narrower: smallest,
    decidedElsewhere: true,
  },
  cwd: {
    expected: "Write a folder inside the one that the agent works in, such as `cwd: packages/api`.",
    read: readWord,
    schema: fieldSchemas.word,
    docs: [
      "a folder",
      "its working directory, inside the folders that its parent works in ([place](subagents.md#working-directory-variables-and-timeout)); only in Retinue",
      "its parent's folder",
    ],
    notInPlugins: true,
    decidedElsewhere: true,
  },
  env: {
    expected: "Write `env:` with lines such as `NODE_ENV: test` below it.",
    read: readEnv,
    schema: orNull(variablesSchema),
    docs: [
      "names and values below it",
      "variables for its commands, except those that steer programs ([which](subagents.md#working-directory-variables-and-timeout)); only in Retinue",
      "none",
    ],
    notInPlugins: true,
    isNested: true,
    decidedElsewhere: true,
  },
  timeout: {
    expected: "Write a number of seconds above 0, such as `timeout: 600`.",
    read: readSeconds,
    schema: { anyOf: [{ type: "number", exclusiveMinimum: 0 }, schemas.numberText, schemas.null] },
    docs: [
      "seconds",
      "time limit, like `limits.seconds`; the smaller one applies; only in Retinue",
      "no limit of its own",
    ],
    restricts: true,
    narrower: (earlier, later) => Math.min(Number(earlier), Number(later)),
    decidedElsewhere: true,
  },
  verify: {
    expected: verifyAdvice,
    read: readVerify,
    schema: verifySchema,
    docs: [
      "a command, a list of commands, or entries of `run`, `timeout`, `retries`",
      "checks that the runtime runs after its last turn ([verified results](verify.md)); only in Retinue",
      "no checks",
    ],
    restricts: true,
    notInPlugins: true,
    isNested: true,
    narrower: bothChecks,
    decidedElsewhere: true,
  },
  runner: {
    expected: runnerAdvice,
    read: readRunnerField,
    schema: runnerSchema,
    docs: [
      "`acp` below it: a known name, a command line or a list of words; `env`, `unguarded`",
      "[another vendor's agent](runners.md) does its work, over the Agent Client Protocol; only in Retinue",
      "its model does",
    ],
    restricts: true,
    notInPlugins: true,
    isNested: true,
  },
} as const satisfies Readonly<Record<string, DefinitionField>>;

export type DefinitionKey = keyof typeof definitionFields;

export const definitionKeys = Object.keys(definitionFields) as readonly DefinitionKey[];

/** The table with its optional columns. */
export function fieldOf(key: DefinitionKey): DefinitionField {
  return definitionFields[key];
}

function readName(field: FrontmatterField, to: FieldReport): string | undefined {
  if (field.value === null) return undefined;
  if (typeof field.value === "string") return field.value.trim();
  if (typeof field.value === "object") return to.unreadable("it is not a string");
  return field.text
    .split("\n")[0]
    ?.replace(/\s+#.*$/, "")
    .trim();
}

function readDescription(field: FrontmatterField, to: FieldReport): string | undefined {
  const text = typeof field.value === "string" ? field.value : proseOf(field);
  const value = text.replaceAll("\\n", "\n").trim();
  if (value !== text.trim()) {
    to.report(
      "note",
      "literal-backslash-n",
      "The description contains the two characters `\\n`; they were read as line breaks.",
    );
  }
  return value === "" ? undefined : value;
}

/** A colon made YAML see a mapping or list where a person wrote prose. */
function proseOf(field: FrontmatterField): string {
  return field.value === null || field.value === undefined ? "" : field.text;
}

function readNames(field: FrontmatterField, to: FieldReport): readonly string[] | undefined {
  const { value } = field;
  if (value === null) return undefined;
  if (typeof value === "string") return splitNames(value);
  if (!Array.isArray(value)) return to.unreadable("it is not a list");
  const names = value
    .flat(3)
    .map((entry: unknown) => (isRecord(entry) && Object.hasOwn(entry, "name") ? entry["name"] : entry));
  if (names.some((name) => typeof name !== "string" && name !== null)) {
    const message = `An entry of \`${field.key}\` is not a name; it was left out.`;
    to.report("warning", "unreadable-field", message, definitionFields.skills.expected);
  }
  return names.filter((name) => typeof name === "string").flatMap(splitNames);
}

function splitNames(text: string): string[] {
  const names = text.split(/[,\n]/).map((name) => name.trim().replace(/^(["'`])(.*)\1$/, "$2"));
  return names.filter((name) => name !== "");
}

function readWord(field: FrontmatterField, to: FieldReport): string | undefined {
  const { value } = field;
  if (value === null) return undefined;
  if (typeof value === "string") return value.trim() === "" ? undefined : value.trim();
  if (typeof value === "object") return to.unreadable("it is not one word");
  return String(value);
}

function readText(field: FrontmatterField, to: FieldReport): string | undefined {
  if (typeof field.value === "string") return field.value.trim() === "" ? undefined : field.value.trim();
  const prose = proseOf(field);
  return prose === "" ? to.unreadable("it is not a string") : prose;
}

function readMode(field: FrontmatterField, to: FieldReport): string | undefined {
  if (field.value === null) return undefined;
  if (typeof field.value !== "string") return to.unreadable("it is not one word");
  const written = field.value.trim();
  const mode = parseModeLoosely(written);
  if (mode !== written && written !== "manual") {
    const effect = mode === undefined ? "the agent keeps its parent's mode" : `it was read as ${mode}`;
    to.report(
      "warning",
      "unknown-permission-mode",
      `Unknown permission mode ${JSON.stringify(written.slice(0, 80))}; ${effect}.`,
      definitionFields.permissionMode.expected,
    );
  }
  return mode;
}

function readTurns(field: FrontmatterField, to: FieldReport): number | undefined {
  if (field.value === null) return undefined;
  const turns = typeof field.value === "string" ? Number(field.value.trim() || "x") : field.value;
  if (typeof turns === "number" && Number.isSafeInteger(turns) && turns > 0) return turns;
  return to.unreadable("it is not a whole number from 1");
}

function readServers(field: FrontmatterField, to: FieldReport): readonly AgentMcpServer[] | undefined {
  return readMcpServersField(field.value, { ...to, path: [field.key] });
}

function readHooksField(field: FrontmatterField, to: FieldReport): unknown {
  if (field.value === null) return undefined;
  if (typeof field.value !== "object") return to.unreadable("it is not a mapping of events");
  const { hooks, issues } = readHooks(field.value, [field.key]);
  to.issues.push(...issues);
  return hooks;
}

function readMemory(field: FrontmatterField, to: FieldReport): MemoryScope | undefined {
  if (field.value === null) return undefined;
  const scope = memoryScopes.find((known) => known === field.value);
  return scope ?? to.unreadable(`${JSON.stringify(field.value)?.slice(0, 40)} is not a scope`);
}

/**
 * Other programs may have a `limits` of their own, which is ignored. Where one entry is a limit as it is meant here, the
 * field is meant for us, and another entry that cannot be kept is an error.
 */
function readLimits(field: FrontmatterField, to: FieldReport): AgentLimits | undefined {
  if (field.value === null) return undefined;
  const reading = readAgentLimits(field.value);
  if (reading.type === "limits") return reading.limits;
  const reason = `${reading.at === undefined ? "it" : `\`${reading.at}\``} ${reading.reason}`;
  if (!holdsLimit(field.value)) return to.unreadable(reason);
  to.issues.push({
    severity: "error",
    code: "unreadable-restriction",
    message: `\`${field.key}\` cannot be read (${reason}); the agent is not loaded, because it could take more than was meant.`,
    advice: definitionFields.limits.expected,
    path: [field.key],
  });
  return undefined;
}

function holdsLimit(value: unknown): boolean {
  if (!isRecord(value)) return false;
  return Object.entries(value).some(
    ([key, written]) => readAgentLimits({ [key]: written }).type === "limits",
  );
}

function readVerify(field: FrontmatterField, to: FieldReport): VerifyChecks | undefined {
  if (field.value === null) return undefined;
  const reading = readVerifyChecks(field.value);
  return reading.type === "checks" ? reading.checks : to.unreadable(reading.reason);
}

function readRunnerField(field: FrontmatterField, to: FieldReport): AgentRunner | undefined {
  if (field.value === null) return undefined;
  const reading = readRunner(field.value);
  return reading.type === "runner" ? reading.runner : to.unreadable(reading.reason);
}

/** Checks guard a result, so those of both hold. */
function bothChecks(earlier: unknown, later: unknown): unknown {
  const [one, other] = [earlier, later] as readonly VerifyChecks[];
  return one === undefined || other === undefined
    ? later
    : { ...one, ...other, checks: [...one.checks, ...other.checks] };
}

/** A variable that it may not have is kept, so that starting the agent is refused instead of going on without it. */
function readEnv(field: FrontmatterField, to: FieldReport): OwnVariables | undefined {
  if (field.value === null) return undefined;
  const reading = readVariables(field.value);
  if (reading.type === "unreadable") return to.unreadable(reading.reason);
  for (const name of Object.keys(reading.variables)) {
    const reason = refuseVariable(name, "person");
    if (reason !== undefined)
      to.report(
        "warning",
        "variable-not-allowed",
        `\`${field.key}\` cannot be honoured (${reason}); the agent is listed, but starting it is refused.`,
        "Leave the variable out; set it where you start Retinue.",
      );
  }
  return reading.variables;
}

function readSeconds(field: FrontmatterField, to: FieldReport): number | undefined {
  if (field.value === null) return undefined;
  const seconds = typeof field.value === "string" ? Number(field.value.trim() || "x") : field.value;
  if (typeof seconds === "number" && Number.isFinite(seconds) && seconds > 0) return seconds;
  return to.unreadable("it is not a number of seconds above 0");
}

function readBoolean(field: FrontmatterField, to: FieldReport): boolean | undefined {
  if (field.value === null) return undefined;
  if (typeof field.value === "boolean") return field.value;
  const value = booleanWords.get(String(field.value).trim().toLowerCase());
  return value ?? to.unreadable("it is neither true nor false");
}

function readEffort(field: FrontmatterField, to: FieldReport): string | number | undefined {
  if (typeof field.value === "number") return field.value;
  const word = readWord(field, to);
  if (word === undefined || effortLevels.some((level) => level === word)) return word;
  to.report(
    "warning",
    "unknown-effort",
    `Unknown effort ${JSON.stringify(word)}; the session's effort is used.`,
    definitionFields.effort.expected,
  );
  return word;
}

function readIsolation(field: FrontmatterField, to: FieldReport): string | undefined {
  if (field.value === null || field.value === false) return undefined;
  if (field.value === true) {
    const message = "`isolation: true` was read as `worktree`, the only isolation.";
    to.report("warning", "unknown-isolation", message, definitionFields.isolation.expected);
    return "worktree";
  }
  if (typeof field.value !== "string") return to.unreadable("it is not one word");
  const word = field.value.trim();
  if (word === "" || word === "none") return undefined;
  if (word !== "worktree") {
    to.report(
      "warning",
      "unknown-isolation",
      `Unknown isolation ${JSON.stringify(word)}; the agent is listed, but starting it is refused.`,
      definitionFields.isolation.expected,
    );
  }
  return word;
}

interface ServersReport {
  readonly unreadable: (reason: string) => undefined;
  readonly issues: Issue[];
  readonly path: DocumentPath;
}

/** More come from a mistake or from repeated YAML aliases, never from a person. */
const maxServers = 1000;

/** Reads `mcpServers`: names, `{name: config}` entries, `{serverName, tools}` entries, or one mapping of all servers. */
function readMcpServersField(value: unknown, to: ServersReport): readonly AgentMcpServer[] | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "string") return value.split(",").flatMap((name) => reference(name));
  if (isRecord(value)) return fromMapping(value, to, []);
  if (!Array.isArray(value)) return to.unreadable("it is neither a list nor a mapping");
  if (value.length > maxServers) return to.unreadable(`it names more than ${maxServers} servers`);
  return value.flatMap((entry: unknown, index): readonly AgentMcpServer[] => {
    if (typeof entry === "string") return reference(entry);
    if (isRecord(entry)) return fromMapping(entry, to, [index]);
    to.issues.push(dropped([...to.path, index], "an entry is neither a name nor a `name: config` mapping"));
    return [];
  });
}

function fromMapping(
  entry: Record<string, unknown>,
  to: ServersReport,
  at: DocumentPath,
): readonly AgentMcpServer[] {
  if (typeof entry["serverName"] === "string") return narrowed(entry["serverName"], entry["tools"], to, at);
  const servers = Object.entries(entry);
  if (servers.length > maxServers) return to.unreadable(`it names more than ${maxServers} servers`) ?? [];
  return servers.flatMap(([name, config]): readonly AgentMcpServer[] => {
    if (config === null || config === true) return reference(name);
    if (isRecord(config)) return [{ type: "inline", name, config }];
    to.issues.push(dropped([...to.path, ...at, name], `the configuration of \`${name}\` is not a mapping`));
    return [];
  });
}

/** `tools` limits the server, so a value that cannot be read drops the server instead of opening all of it. */
function narrowed(
  name: string,
  tools: unknown,
  to: ServersReport,
  at: DocumentPath,
): readonly AgentMcpServer[] {
  if (tools === undefined || tools === null) return reference(name);
  const names = typeof tools === "string" ? tools.split(",").map((tool) => tool.trim()) : tools;
  if (Array.isArray(names) && names.every((tool) => typeof tool === "string")) {
    return [{ type: "reference", name, tools: names }];
  }
  to.issues.push(dropped([...to.path, ...at, "tools"], `\`tools\` of \`${name}\` is not a list of names`));
  return [];
}

function reference(name: string): readonly AgentMcpServer[] {
  return name.trim() === "" ? [] : [{ type: "reference", name: name.trim() }];
}

function dropped(path: DocumentPath, reason: string): Issue {
  return {
    severity: "warning",
    code: "mcp-server-dropped",
    message: `An MCP server was left out: ${reason}.`,
    advice: "Write the server's name, or `name:` with `command` or `url` below it.",
    path,
  };
}

function inBoth(earlier: unknown, later: unknown): unknown {
  return Array.isArray(earlier) && Array.isArray(later)
    ? later.filter((entry) => earlier.includes(entry))
    : later;
}

/** The reader gives nothing but modes. */
function narrowerMode(earlier: unknown, later: unknown): unknown {
  return isWiderMode(later as PermissionMode, earlier as PermissionMode) ? earlier : later;
}

/** Of each limit the smaller number. */
function smallest(earlier: unknown, later: unknown): unknown {
  if (!isRecord(earlier) || !isRecord(later)) return later;
  const both = Object.keys(earlier).filter((key) => Object.hasOwn(later, key));
  const least = both.map((key) => [key, Math.min(Number(earlier[key]), Number(later[key]))]);
  return { ...earlier, ...later, ...Object.fromEntries(least) };
}
