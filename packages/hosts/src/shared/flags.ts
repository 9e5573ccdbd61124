import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { quote } from "@retinue/base/foundation/json-record.ts";
import {
  agentSources,
  effortLevels,
  parsePermissionMode,
  permissionModes,
  type SettingSource,
  settingSources,
} from "@retinue/base/foundation/option-words.ts";
import { findBadRule, type RuleList } from "@retinue/core/kernel/options/find-bad-rule.ts";
import type { RuntimeOptions, SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ProjectOptions } from "@retinue/core/kernel/project/project-facts.ts";
import { misuse } from "./misuse.ts";
import { amount, count, longName, type OptionEntry, type OptionNeed, readSeconds } from "./option-entry.ts";

/**
 * One flag: how it is written and checked, and what it means. The parser, help, completion, the man page, the tables of the docs,
 * the types of the values and the options of sessions and runtimes are made from these rows.
 */
export interface Flag<Value> extends OptionEntry {
  /** As docs/command-line.md describes it; otherwise the description. */
  readonly docs?: string;
  /** Programs pass it with an empty value where they have none. */
  readonly emptyIsAbsent?: true;
  /** Where it holds besides sessions of this process. */
  readonly alsoIn?: readonly FlagPlace[];
  /** The plan of a child has decided it, so that it cannot be given with one. */
  readonly isPlanned?: true;
  /** It only means something where a program reads the messages. */
  readonly isForPrograms?: true;
  /** Refuses a value that could not take effect. */
  check?(value: Value, cwd: string): void;
  /** What it means to the project of the folder, and to every runtime. */
  folder?(value: Value): Partial<ProjectOptions>;
  /** What it means to the runtime of a run. */
  runtime?(value: Value, environment: Environment): RuntimeOptions;
  /** What it means to a session. */
  session?(value: Value, cwd: string): SessionOptions;
}

/** Sessions that workers of a store run, plans of children that they run, and agents that MCP clients start. */
type FlagPlace = "store" | "store-plan" | "mcp-server";
type Environment = Readonly<Record<string, string | undefined>>;

/** The values of flags as the parser hands them over. */
export type FlagValues<Rows> = {
  readonly [Name in keyof Rows]?: Rows[Name] extends Flag<infer Value> ? Value : never;
};

const toggle = (row: Flag<boolean>): Flag<boolean> => row;
const text = (row: Flag<string>): Flag<string> => row;
const optionalText = (row: Flag<string | boolean>): Flag<string | boolean> => row;
const list = <Word extends string = string>(row: Flag<readonly Word[]>): Flag<readonly Word[]> => row;

const inStore: readonly FlagPlace[] = ["store"];
const inServer: readonly FlagPlace[] = ["mcp-server"];
const inStoreAndServer: readonly FlagPlace[] = ["store", "mcp-server"];
const shown: readonly FlagPlace[] = ["store", "store-plan"];

const everywhere = "Every command:";
const output = "Input and output:";
const agent = "Agent and model:";
const rights = "Tools and permissions:";
const limits = "Limits:";
const prompts = "Prompts:";
const session = "Session:";

const stream: readonly OptionNeed[] = [{ option: "--output-format", value: "stream-json" }];

function readModelList(written: string): readonly string[] {
  const names = written.split(",").map((name) => name.trim());
  if (!names.includes("")) return names;
  throw misuse(
    `--fallback-model has an empty name: ${JSON.stringify(written)}.`,
    'Write the names of models, separated by commas, such as "opus,haiku".',
  );
}

/** Flags that hold for every command; a key is the name under which the parser keeps the value. */
export const commandFlags = {
  agents: text({
    flags: "--agents <json|file>",
    description: "agents for this run, keyed by name",
    docs: "agents for this run, keyed by name, with `prompt` for the body",
    group: everywhere,
    emptyIsAbsent: true,
    alsoIn: inStoreAndServer,
  }),
  settings: text({
    flags: "--settings <file|json>",
    description: "additional settings",
    docs: "additional settings, which take precedence over user, project and local ones",
    group: everywhere,
    emptyIsAbsent: true,
    alsoIn: inServer,
    folder: (settings) => ({ settings }),
  }),
  settingSources: list<SettingSource>({
    flags: "--setting-sources <list>",
    description: "which settings to read",
    docs: "which of `user,project,local` to read; empty for none",
    value: { type: "word-list", words: settingSources },
    group: everywhere,
    alsoIn: inServer,
    folder: (sources) => ({ settingSources: sources }),
  }),
  pluginDir: list({
    flags: "--plugin-dir <folder>",
    description: "use the plugin in this folder",
    docs: "use the plugin in this folder; repeatable",
    isRepeatable: true,
    group: everywhere,
    alsoIn: inServer,
    check: (folders, cwd) => checkFolders("--plugin-dir", folders, cwd),
    folder: (folders) => ({ pluginDirectories: folders }),
  }),
  agentsFrom: list({
    flags: "--agents-from <list>",
    description: "which products' agent files to read",
    docs: "which products' agent files to read; default `claude,agents`; also `opencode`, `codex`, `copilot`, `gemini`, `qwen`, `cursor`, `factory`, `kiro`, `cline`, `goose`, `pi` ([formats](formats.md))",
    value: { type: "word-list", words: agentSources },
    group: everywhere,
    alsoIn: inServer,
    folder: (sources) => ({ agentSources: sources }),
  }),
  addDir: list({
    flags: "--add-dir <folder>",
    description: "another folder to work in and read agents from",
    docs: "let agents work in this folder too, and read its `.claude/agents`, as far as the folder itself is [trusted](trust.md); repeatable",
    isRepeatable: true,
    moreWords: "folders",
    group: everywhere,
    alsoIn: inServer,
    check: (folders, cwd) => checkFolders("--add-dir", folders, cwd),
    folder: (folders) => ({ additionalDirectories: folders }),
  }),
  disallowedTools: list({
    flags: "--disallowed-tools, --disallowedTools <list>",
    description: "deny rules",
    docs: 'deny rules, such as `"Task(Explore)"`; repeatable',
    value: { type: "entries" },
    moreWords: "tools",
    group: everywhere,
    alsoIn: inStoreAndServer,
    check: (rules) => checkRules("--disallowedTools", "deny", rules),
    folder: (rules) => ({ disallowedTools: rules }),
  }),
  mcpConfig: list({
    flags: "--mcp-config <json|file>",
    description: "MCP servers for this run",
    docs: "additional [MCP servers](mcp.md); repeatable, or several after one option",
    isRepeatable: true,
    group: everywhere,
    emptyIsAbsent: true,
    alsoIn: inServer,
    folder: (mcpConfig) => ({ mcpConfig }),
  }),
  strictMcpConfig: toggle({
    flags: "--strict-mcp-config",
    description: "use only the MCP servers of --mcp-config",
    docs: "use only the MCP servers of `--mcp-config`",
    group: everywhere,
    alsoIn: inServer,
    folder: (strictMcpConfig) => ({ strictMcpConfig }),
  }),
  trust: toggle({
    flags: "--trust",
    description: "trust the working folder for this run",
    docs: "[trust](trust.md) the working folder for this run",
    group: everywhere,
    alsoIn: inServer,
    folder: (trusted) => ({ trusted }),
  }),
  verbose: toggle({
    flags: "--verbose",
    description: "with --output-format json: all messages as a list",
    docs: "with `--output-format json`: all messages as a list",
    group: everywhere,
    alsoIn: ["store", "store-plan", "mcp-server"],
  }),
};

/** Flags of a run; they carry the names people know from Claude Code. */
export const runFlags = {
  print: toggle({
    flags: "-p, --print",
    description: "run the prompt and print the result",
    group: output,
    alsoIn: shown,
  }),
  outputFormat: text({
    flags: "--output-format <format>",
    description: "text, json or stream-json",
    docs: "`text`, `json` or `stream-json` ([shapes](running.md#output-formats))",
    value: { type: "word", words: ["text", "json", "stream-json"] },
    group: output,
    alsoIn: shown,
  }),
  inputFormat: text({
    flags: "--input-format <format>",
    description: "text or stream-json",
    docs: "`text`, or `stream-json` for several prompts on stdin",
    value: { type: "word", words: ["text", "stream-json"] },
    group: output,
  }),
  includePartialMessages: toggle({
    flags: "--include-partial-messages",
    description: "stream-json: include text while the model writes it",
    docs: "with `stream-json`: include text while the model writes it",
    needs: stream,
    group: output,
    alsoIn: shown,
  }),
  replayUserMessages: toggle({
    flags: "--replay-user-messages",
    description: "stream-json: include the prompts",
    docs: "with `stream-json`: include the prompts",
    needs: stream,
    group: output,
    alsoIn: shown,
  }),
  forwardSubagentText: toggle({
    flags: "--forward-subagent-text",
    description: "stream-json: include the text of child agents",
    docs: "with `stream-json`: include the text of [child agents](#child-agents), not only their calls",
    needs: stream,
    group: output,
  }),
  model: text({
    flags: "--model <model>",
    description: "an alias, an id, or provider/model",
    docs: "an alias, an id, or `provider/model` ([models](models.md))",
    value: { type: "suggested", words: ["opus", "sonnet", "haiku", "offline"] },
    group: agent,
    emptyIsAbsent: true,
    alsoIn: inStoreAndServer,
    isPlanned: true,
    session: (model) => ({ model }),
  }),
  effort: text({
    flags: "--effort <level>",
    description: "reasoning effort of the model",
    value: { type: "word", words: effortLevels },
    group: agent,
    emptyIsAbsent: true,
    alsoIn: inStore,
    isPlanned: true,
    session: (effort) => ({ effort }),
  }),
  agent: text({
    flags: "--agent <name>",
    description: "run this agent as the main agent",
    group: agent,
    alsoIn: inStore,
    isPlanned: true,
    session: (name) => ({ agent: name }),
  }),
  tools: text({
    flags: "--tools <list>",
    description: 'which built-in tools exist; "" for none',
    docs: 'which built-in tools exist; `""` for none, `default` for all',
    moreWords: "tools",
    group: rights,
    alsoIn: inStoreAndServer,
    isPlanned: true,
    session: (names) => (names.trim() === "default" ? {} : { tools: splitNames(names) }),
  }),
  allowedTools: list({
    flags: "--allowed-tools, --allowedTools <list>",
    description: "rules that allow calls",
    docs: 'rules that allow calls, such as `"Bash(git *),Edit"`; repeatable',
    value: { type: "entries" },
    moreWords: "tools",
    group: rights,
    alsoIn: inStoreAndServer,
    isPlanned: true,
    check: (rules) => checkRules("--allowedTools", "allow", rules),
    session: (rules) => ({ allowedTools: rules }),
  }),
  permissionMode: text({
    flags: "--permission-mode <mode>",
    description: "what happens to calls that no rule covers",
    docs: "`default`, `acceptEdits`, `plan`, `dontAsk`, `bypassPermissions` or, for the lead of a [team](teams.md), `delegate`",
    value: {
      type: "word",
      words: permissionModes.filter((mode) => mode !== "auto"),
      accepts: (mode) => parsePermissionMode(mode) !== undefined,
    },
    group: rights,
    alsoIn: inStoreAndServer,
    isPlanned: true,
    session(written) {
      const mode = parsePermissionMode(written);
      return mode === undefined ? {} : { permissionMode: mode };
    },
  }),
  permissionPromptTool: text({
    flags: "--permission-prompt-tool <tool>",
    description: "an MCP tool that answers permission questions",
    docs: "an [MCP tool](mcp-tools.md) that [answers permission questions](permissions.md#asking)",
    group: rights,
    emptyIsAbsent: true,
    session: (tool) => ({ permissionPromptTool: tool }),
  }),
  dangerouslySkipPermissions: toggle({
    flags: "--dangerously-skip-permissions",
    description: "allow everything that no rule denies",
    docs: "allow everything that no rule names",
    group: rights,
    alsoIn: ["store", "store-plan", "mcp-server"],
    session: (skipPermissions) => ({ skipPermissions }),
  }),
  maxTurns: text({
    flags: "--max-turns <n>",
    description: "maximum number of turns",
    docs: "maximum number of turns per prompt",
    value: count,
    group: limits,
    emptyIsAbsent: true,
    alsoIn: inStore,
    isPlanned: true,
    session: (turns) => ({ maxTurns: Number(turns) }),
  }),
  maxBudgetUsd: text({
    flags: "--max-budget-usd <amount>",
    description: "maximum cost, child agents included",
    docs: "maximum cost of the whole conversation, child agents included ([limits](limits.md))",
    value: amount,
    group: limits,
    alsoIn: inStore,
    session: (dollars) => ({ maxBudgetUsd: Number(dollars) }),
  }),
  maxTime: text({
    flags: "--max-time <duration>",
    description: "maximum working time, such as 90s or 10m",
    docs: "maximum working time, such as `90s` or `10m`; waiting for a person does not count",
    value: { type: "duration" },
    group: limits,
    alsoIn: inStore,
    session(duration) {
      const seconds = readSeconds(duration);
      return seconds === undefined ? {} : { limits: { tree: { seconds } } };
    },
  }),
  systemPrompt: text({
    flags: "--system-prompt <text>",
    description: "replace the default system prompt",
    group: prompts,
    alsoIn: inStore,
    isPlanned: true,
    session: (systemPrompt) => ({ systemPrompt }),
  }),
  systemPromptFile: text({
    flags: "--system-prompt-file <file>",
    description: "the same, from a file",
    conflicts: ["--system-prompt"],
    group: prompts,
    emptyIsAbsent: true,
    alsoIn: inStore,
    isPlanned: true,
    session: (file, cwd) => ({ systemPrompt: readGiven("--system-prompt-file", resolve(cwd, file)) }),
  }),
  appendSystemPrompt: text({
    flags: "--append-system-prompt <text>",
    description: "add to the system prompt",
    group: prompts,
    alsoIn: inStore,
    isPlanned: true,
    session: (appendSystemPrompt) => ({ appendSystemPrompt }),
  }),
  appendSystemPromptFile: text({
    flags: "--append-system-prompt-file <file>",
    description: "the same, from a file",
    conflicts: ["--append-system-prompt"],
    group: prompts,
    emptyIsAbsent: true,
    alsoIn: inStore,
    isPlanned: true,
    session: (file, cwd) => ({
      appendSystemPrompt: readGiven("--append-system-prompt-file", resolve(cwd, file)),
    }),
  }),
  resume: text({
    flags: "-r, --resume <session>",
    description: "resume a session, by id or title",
    group: session,
    isPlanned: true,
    session: (resume) => ({ resume }),
  }),
  continue: toggle({
    flags: "-c, --continue",
    description: "continue the latest session of this folder",
    group: session,
    isPlanned: true,
    session: (continues) => ({ continue: continues }),
  }),
  forkSession: toggle({
    flags: "--fork-session",
    description: "continue in a copy of the session",
    group: session,
    isPlanned: true,
    session: (forkSession) => ({ forkSession }),
  }),
  background: toggle({
    flags: "--bg, --background",
    description: "run in the background: print an id and return",
    docs: "run in the [background](background.md): print an id and return immediately",
    group: session,
  }),
  takeOver: toggle({
    flags: "--take-over",
    description: "take the session from another process that holds it",
    docs: "take the session, or with `retinue resume ID` the agent, from another process that [holds it](recovery.md#who-holds-a-session)",
    group: session,
    session: (takeOver) => ({ takeOver }),
  }),
  sessionId: text({
    flags: "--session-id <uuid>",
    description: "the id of the session",
    docs: "the id of the new session",
    group: session,
    emptyIsAbsent: true,
    alsoIn: inStore,
    isPlanned: true,
    session: (sessionId) => ({ sessionId }),
  }),
  sessionPersistence: toggle({
    flags: "--no-session-persistence",
    description: "record no transcript",
    group: session,
    alsoIn: ["store", "store-plan", "mcp-server"],
    runtime: (transcripts) => ({ transcripts }),
  }),
  disableSlashCommands: toggle({
    flags: "--disable-slash-commands",
    description: "treat prompts such as /name as plain text",
    docs: "treat prompts such as `/name` as plain text instead of calling a [skill](skills.md)",
    group: prompts,
    alsoIn: inStore,
    session: () => ({ slashCommands: false }),
  }),
  jsonSchema: text({
    flags: "--json-schema <json|file>",
    description: "JSON Schema that the result must match",
    group: output,
    emptyIsAbsent: true,
    alsoIn: inStore,
    isPlanned: true,
    session: (given, cwd) => ({ output: readSchema(given, cwd) }),
  }),
  plain: toggle({
    flags: "--plain",
    description: "in a terminal: print lines only, for screen readers",
    docs: "in a terminal: print lines only and never redraw, for screen readers",
    group: output,
  }),
  ask: toggle({
    flags: "--no-ask",
    description: "never ask; refuse calls that need approval",
    docs: "never ask, even in a terminal; refuse calls that need approval",
    group: rights,
  }),
  approvals: text({
    flags: "--approvals <way>",
    description: "questions with no one to ask: wait (see retinue approvals) or refuse",
    docs: "`wait` or `refuse`: if no one can be asked, calls that need approval wait in the [inbox](approvals.md) or are refused",
    value: { type: "word", words: ["wait", "refuse"] },
    group: rights,
    alsoIn: inStore,
    runtime: (way) => ({ approvals: way === "wait" ? "inbox" : "refuse" }),
  }),
};

/** Flags that scripts for `claude` and programs on the Agent SDK give, and people seldom write; help does not show them. */
export const programFlags = {
  allowDangerouslySkipPermissions: toggle({
    flags: "--allow-dangerously-skip-permissions",
    description: "the mode bypassPermissions may be chosen later",
  }),
  permissionPrompts: text({
    flags: "--permission-prompts <who>",
    description: "host: the host is asked, as without it; none: no one",
  }),
  thinking: text({ flags: "--thinking <mode>", description: "adaptive or disabled" }),
  maxThinkingTokens: text({
    flags: "--max-thinking-tokens <n>",
    description: "tokens for thinking",
    emptyIsAbsent: true,
  }),
  includeHookEvents: toggle({
    flags: "--include-hook-events",
    description: "also report hooks",
    isForPrograms: true,
  }),
  taskBudget: text({
    flags: "--task-budget <n>",
    description: "tokens that the model is asked to get by with",
    isForPrograms: true,
  }),
  betas: list({
    flags: "--betas <list...>",
    description: "beta features of the provider, sent with every request",
    emptyIsAbsent: true,
    runtime: (betas, environment) => ({ env: withBetas(environment, betas) }),
  }),
  awaitInitialize: toggle({
    flags: "--await-initialize",
    description: "wait for initialize before anything else",
    isForPrograms: true,
  }),
  fallbackModel: text({
    flags: "--fallback-model <models>",
    description: "models to use if the chosen one fails, separated by commas",
    docs: "models to use if the chosen one is overloaded or gone, for children too, separated by commas ([models](models.md#retries-and-fallback))",
    emptyIsAbsent: true,
    alsoIn: inServer,
    session: (names) => ({ fallbackModel: readModelList(names) }),
  }),
  resumeSessionAt: text({ flags: "--resume-session-at <uuid>", description: "resume up to this message" }),
  resumeDropsTurn: text({ flags: "--resume-drops-turn <uuid>", description: "resume without this turn" }),
  sessionMirror: toggle({
    flags: "--session-mirror",
    description: "also send what is written to the transcript",
    isForPrograms: true,
  }),
  name: text({ flags: "-n, --name <title>", description: "the title of the session", emptyIsAbsent: true }),
  bare: toggle({
    flags: "--bare",
    description: "no settings, hooks, servers, agents or instructions that are not named here",
  }),
  safeMode: toggle({ flags: "--safe-mode", description: "the same" }),
  debug: optionalText({
    flags: "-d, --debug [filter]",
    description: "show stack traces of errors",
    docs: "stack traces with errors",
    group: everywhere,
  }),
  debugFile: text({
    flags: "--debug-file <file>",
    description: "write events and stack traces to a file",
    docs: "write a session's events with times, and stack traces, to a file; without prompts, answers and results",
    group: everywhere,
  }),
  worktree: optionalText({
    flags: "-w, --worktree [name]",
    description: "work in a git worktree of that name",
    docs: "work in a [git worktree](worktrees.md#a-worktree-for-a-whole-session) of that name",
  }),
  managedSettings: text({
    flags: "--managed-settings <json>",
    description: "rules of the host's organisation, which only restrict",
    isForPrograms: true,
  }),
  appendSubagentSystemPrompt: text({
    flags: "--append-subagent-system-prompt <text>",
    description: "added to the prompt of every child agent",
    alsoIn: inStore,
    session: (appendSubagentSystemPrompt) => ({ appendSubagentSystemPrompt }),
  }),
  appendSubagentSystemPromptFile: text({
    flags: "--append-subagent-system-prompt-file <file>",
    description: "the same, from a file",
    conflicts: ["--append-subagent-system-prompt"],
    alsoIn: inStore,
    session: (file, cwd) => ({
      appendSubagentSystemPrompt: readGiven("--append-subagent-system-prompt-file", resolve(cwd, file)),
    }),
  }),
};

/** Flags that there are where a store is named. */
export const storeFlags = {
  store: text({
    flags: "--store <url>",
    description: "postgres://user@host/database, or file:///folder; or RETINUE_STORE",
    alsoIn: shown,
  }),
  tenant: text({ flags: "--tenant <name>", description: "whose agents these are", alsoIn: shown }),
  workspace: text({
    flags: "--workspace <type>",
    description: "with -p: shared, pinned or git",
    alsoIn: shown,
  }),
  queue: list({
    flags: "--queue <name>",
    description: "a queue of workers; may be repeated with serve",
    isRepeatable: true,
    alsoIn: shown,
  }),
  remoteChildren: toggle({
    flags: "--remote-children",
    description: "with -p: children are agents of the store, on any worker",
    alsoIn: inStore,
  }),
  detach: toggle({ flags: "--detach", description: "with -p: only print the id", alsoIn: shown }),
  json: toggle({ flags: "--json", description: "print JSON", alsoIn: shown }),
};

/** The flags of every command, as the parser hands them over. */
export type CommandFlags = FlagValues<typeof commandFlags>;
/** The flags of a run, as the parser hands them over. */
export type RunFlags = FlagValues<typeof runFlags> & FlagValues<typeof programFlags>;

/** The flags of a run in a store. */
export type StoreRunFlags = RunFlags & FlagValues<typeof storeFlags>;

type AnyFlag = Flag<never>;
const runRows: Readonly<Record<string, AnyFlag>> = { ...runFlags, ...programFlags };
const allRows: Readonly<Record<string, AnyFlag>> = { ...commandFlags, ...runRows, ...storeFlags };

/** The rows whose flag was given, with its value. */
function givenRows<Values extends object>(
  rows: Readonly<Record<string, AnyFlag>>,
  values: Values,
): readonly (readonly [row: AnyFlag, value: never])[] {
  const given = new Map<string, unknown>(Object.entries(values));
  return Object.entries(rows).flatMap(([name, row]) => {
    const value = given.get(name);
    // The parser keeps what the row says; its type belongs to the key, which a loop over all rows forgets.
    return value === undefined ? [] : [[row, value as never] as const];
  });
}

/** Refuses values that could not take effect: an option must not be passed over. */
export function checkFlags(values: CommandFlags, cwd: string, ofRun: RunFlags = {}): void {
  const given = [...givenRows(runRows, ofRun), ...givenRows(commandFlags, values)];
  for (const [row, value] of given) row.check?.(value, cwd);
}

/** What flags mean to the project of the folder, and to every runtime. */
export function folderOptionsOf(values: CommandFlags): Partial<ProjectOptions> {
  return Object.assign({}, ...givenRows(commandFlags, values).map(([row, value]) => row.folder?.(value)));
}

/** What flags mean to the runtime of a run. */
export function runtimeOptionsOf(values: RunFlags, environment: Environment): RuntimeOptions {
  return Object.assign(
    {},
    ...givenRows(runRows, values).map(([row, value]) => row.runtime?.(value, environment)),
  );
}

/** What flags mean to a session. */
export function sessionOptionsOf(values: RunFlags, cwd: string): SessionOptions {
  let options: SessionOptions = {};
  for (const [row, value] of givenRows(runRows, values)) {
    const more = row.session?.(value, cwd) ?? {};
    const { limits: before } = options;
    const isMerged = before !== undefined && more.limits !== undefined;
    options = { ...options, ...more };
    if (isMerged)
      options = {
        ...options,
        limits: { ...before, ...more.limits, tree: { ...before.tree, ...more.limits?.tree } },
      };
  }
  return options;
}

/** The name of the first flag that was given and does not hold at a place; `besides` are options that are no flags. */
export function strayFlag(
  values: object,
  place: FlagPlace,
  besides: readonly string[] = [],
): string | undefined {
  const stray = Object.entries(values).find(
    ([name, value]) =>
      value !== undefined &&
      // Without `--no-ask`, the parser sets `ask` to true.
      !(name === "ask" && value === true) &&
      !besides.includes(name) &&
      allRows[name]?.alsoIn?.includes(place) !== true,
  );
  if (stray === undefined) return undefined;
  const name = stray[0] === "ask" ? "noAsk" : stray[0];
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The first flag that was given although the plan of a child has decided it. */
export function plannedFlag(values: object): string | undefined {
  const found = givenRows(runRows, values).find(([row]) => row.isPlanned === true);
  return found === undefined ? undefined : longName(found[0]);
}

/** Flags that count as not given where their value is empty. */
export const absentWhenEmpty: ReadonlySet<string> = new Set(
  Object.values(allRows)
    .filter(({ emptyIsAbsent }) => emptyIsAbsent === true)
    .map((row) => longName(row)),
);

export function checkRules(option: string, list: RuleList, rules: readonly string[]): void {
  const bad = rules.length === 0 ? undefined : findBadRule(list, rules);
  if (bad !== undefined)
    throw misuse(`${option} contains a rule that is not valid: ${bad.reason}.`, bad.advice);
}

function checkFolders(option: string, folders: readonly string[], cwd: string): void {
  const missing = folders.find((folder) => !existsSync(resolve(cwd, folder)));
  if (missing !== undefined)
    throw misuse(`${option} names a folder that does not exist: ${quote(missing, 300)}.`, "Check the path.");
}

function splitNames(names: string): readonly string[] {
  return names
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

function readGiven(option: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw misuse(`${option} names a file that cannot be read: ${file}.`, "Check the path.");
  }
}

function readSchema(given: string, cwd: string): Readonly<Record<string, unknown>> {
  const written = given.trimStart().startsWith("{") ? given : readGiven("--json-schema", resolve(cwd, given));
  try {
    const value: unknown = JSON.parse(written);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Reported below together with values that are JSON but no schema.
  }
  throw misuse(
    "--json-schema is not a JSON Schema object.",
    'Write it inline as {"type":"object",…}, or name a file.',
  );
}

/** Beta features go out as a header of every request, beside the headers that are set already. */
function withBetas(environment: Environment, betas: readonly string[]): Environment {
  const names = betas.flatMap((each) => each.split(",")).map((each) => each.trim());
  const broken = names.find((name) => !/^[\w.-]+$/.test(name));
  if (broken !== undefined) throw misuse(`--betas has no beta feature ${JSON.stringify(broken)}.`);
  if (names.length === 0) return environment;
  const before = environment["ANTHROPIC_CUSTOM_HEADERS"];
  const header = `anthropic-beta: ${names.join(",")}`;
  const headers = before === undefined || before.trim() === "" ? header : `${before}\n${header}`;
  return { ...environment, ANTHROPIC_CUSTOM_HEADERS: headers };
}
