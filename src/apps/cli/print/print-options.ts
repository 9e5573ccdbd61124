import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import {
  type PermissionMode,
  parsePermissionMode,
  permissionModes,
} from "../../../permissions/permission-policy.ts";
import type { SessionOptions as RuntimeSessionOptions } from "../../../runtime/options/runtime-options.ts";
import { parseToolEntry, resolveToolName } from "../../../tools/grants/tool-entry.ts";
import { checkRules } from "../check-session-options.ts";
import { misuse, type SessionOptions } from "../session-options.ts";

/** The options of `retinue -p` as commander hands them over. */
export interface PrintOptions {
  readonly print?: boolean;
  readonly outputFormat?: string;
  readonly inputFormat?: string;
  readonly includePartialMessages?: boolean;
  readonly replayUserMessages?: boolean;
  readonly forwardSubagentText?: boolean;
  readonly model?: string;
  readonly effort?: string;
  readonly agent?: string;
  readonly tools?: string;
  readonly allowedTools?: readonly string[];
  readonly permissionMode?: string;
  readonly permissionPromptTool?: string;
  readonly dangerouslySkipPermissions?: boolean;
  readonly maxTurns?: string;
  readonly maxBudgetUsd?: string;
  readonly maxTime?: string;
  readonly systemPrompt?: string;
  readonly systemPromptFile?: string;
  readonly appendSystemPrompt?: string;
  readonly appendSystemPromptFile?: string;
  readonly appendSubagentSystemPrompt?: string;
  readonly appendSubagentSystemPromptFile?: string;
  readonly resume?: string;
  readonly continue?: boolean;
  readonly forkSession?: boolean;
  readonly takeOver?: boolean;
  readonly sessionId?: string;
  readonly sessionPersistence?: boolean;
  readonly jsonSchema?: string;
  readonly disableSlashCommands?: boolean;
  /** Lines instead of a screen that is painted, in a conversation on a terminal. */
  readonly plain?: boolean;
  /** False: no one is asked, even when a person sits at a terminal. */
  readonly ask?: boolean;
  /** `wait`: what nobody can be asked waits in the inbox; `refuse`: it is refused. */
  readonly approvals?: string;
}

const outputFormats = ["text", "json", "stream-json"] as const;
const inputFormats = ["text", "stream-json"] as const;

/** What `retinue -p` was asked to do, with every value checked. */
export interface PrintRequest {
  readonly output: (typeof outputFormats)[number];
  readonly input: (typeof inputFormats)[number];
  readonly partial: boolean;
  readonly replay: boolean;
  /** What children say too, not only what they do. */
  readonly childText: boolean;
  /** JSON is a list of all messages, not the result alone. */
  readonly verbose: boolean;
  readonly session: RuntimeSessionOptions;
}

interface Surroundings {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly session: SessionOptions;
}

export function readPrintOptions(options: PrintOptions, { words, cwd, session }: Surroundings): PrintRequest {
  const output = chooseFormat("--output-format", options.outputFormat, outputFormats);
  const input = chooseFormat("--input-format", options.inputFormat, inputFormats);
  const partial = options.includePartialMessages === true;
  const replay = options.replayUserMessages === true;
  const childText = options.forwardSubagentText === true;
  refuseWithoutStream(output, { partial, replay, childText });
  if (input === "stream-json" && words.length > 0) {
    throw misuse(
      "With --input-format stream-json the prompts come from stdin alone.",
      "Leave out the prompt.",
    );
  }
  checkRules("--allowedTools", "allow", options.allowedTools ?? []);
  refuseStrayEntries(words, options, session);
  const verbose = session.verbose === true;
  return { output, input, partial, replay, childText, verbose, session: readSessionOptions(options, cwd) };
}

function refuseWithoutStream(
  output: PrintRequest["output"],
  { partial, replay, childText }: Pick<PrintRequest, "partial" | "replay" | "childText">,
): void {
  if (output === "stream-json" || !(partial || replay || childText)) return;
  const other = replay ? "--replay-user-messages" : "--forward-subagent-text";
  throw misuse(
    `${partial ? "--include-partial-messages" : other} has no meaning without --output-format stream-json.`,
  );
}

/** People write `--allowedTools Read Edit`; the second name would quietly become a word of the prompt. */
function refuseStrayEntries(words: readonly string[], options: PrintOptions, session: SessionOptions): void {
  const hasList = [options.allowedTools, options.tools, session.disallowedTools].some(
    (list) => list !== undefined,
  );
  const stray = words.length > 1 && hasList ? words.find(isToolEntry) : undefined;
  if (stray === undefined) return;
  throw misuse(
    `${JSON.stringify(stray)} is where a prompt is expected.`,
    'Write lists of tools with commas, as in --allowedTools "Read,Edit", and the prompt in quotes.',
  );
}

function isToolEntry(word: string): boolean {
  const { name } = parseToolEntry(word);
  return (
    !/\s/.test(name) &&
    ["known", "renamed", "mcp"].includes(resolveToolName(name).type) &&
    /[A-Z_]/.test(name)
  );
}

function chooseFormat<Format extends string>(
  option: string,
  given: string | undefined,
  known: readonly [Format, ...Format[]],
): Format {
  if (given === undefined) return known[0];
  const format = known.find((candidate) => candidate === given);
  if (format !== undefined) return format;
  throw misuse(`Invalid ${option} "${given}".`, `Write one of ${known.join(", ")}.`);
}

function readSessionOptions(options: PrintOptions, cwd: string): RuntimeSessionOptions {
  const systemPrompt = textOrFile(options.systemPrompt, options.systemPromptFile, "--system-prompt", cwd);
  const appendSystemPrompt = textOrFile(
    options.appendSystemPrompt,
    options.appendSystemPromptFile,
    "--append-system-prompt",
    cwd,
  );
  const appendSubagentSystemPrompt = textOrFile(
    options.appendSubagentSystemPrompt,
    options.appendSubagentSystemPromptFile,
    "--append-subagent-system-prompt",
    cwd,
  );
  return withoutUndefined({
    agent: options.agent,
    model: options.model,
    effort: options.effort,
    permissionMode: readMode(options.permissionMode),
    permissionPromptTool: options.permissionPromptTool,
    skipPermissions: options.dangerouslySkipPermissions,
    tools: readToolNames(options.tools),
    allowedTools: options.allowedTools,
    systemPrompt,
    appendSystemPrompt,
    appendSubagentSystemPrompt,
    maxTurns: readNumber(
      "--max-turns",
      options.maxTurns,
      (value) => Number.isSafeInteger(value) && value > 0,
      "a whole number from 1",
    ),
    maxBudgetUsd: readNumber(
      "--max-budget-usd",
      options.maxBudgetUsd,
      (value) => value > 0,
      "an amount above 0",
    ),
    limits: readTimeLimit(options.maxTime),
    resume: options.resume,
    continue: options.continue,
    forkSession: options.forkSession,
    takeOver: options.takeOver,
    sessionId: options.sessionId,
    slashCommands: options.disableSlashCommands === true ? false : undefined,
    output: options.jsonSchema === undefined ? undefined : readSchema(options.jsonSchema, cwd),
  });
}

/** What `--approvals` says, as the runtime takes it. */
export function readApprovals(text: string | undefined): { readonly approvals?: "inbox" | "refuse" } {
  if (text === undefined) return {};
  if (text === "wait") return { approvals: "inbox" };
  if (text === "refuse") return { approvals: "refuse" };
  throw misuse(`--approvals does not know "${text}".`, "Write wait or refuse.");
}

function readMode(text: string | undefined): PermissionMode | undefined {
  if (text === undefined) return undefined;
  const mode = parsePermissionMode(text);
  if (mode !== undefined) return mode;
  throw misuse(`Invalid --permission-mode "${text}".`, `Write one of ${permissionModes.join(", ")}.`);
}

/** `""` means no built-in tool at all, `default` all of them. */
function readToolNames(text: string | undefined): readonly string[] | undefined {
  if (text === undefined || text.trim() === "default") return undefined;
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

function readNumber(
  option: string,
  text: string | undefined,
  isGood: (value: number) => boolean,
  expected: string,
): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value) && isGood(value)) return value;
  throw misuse(`${option} needs ${expected}, but got ${JSON.stringify(text)}.`);
}

const secondsPerUnit: ReadonlyMap<string, number> = new Map([
  ["s", 1],
  ["m", 60],
  ["h", 3600],
]);

/** `90`, `90s`, `10m`, `1h30m`; a bare number is seconds. */
function readTimeLimit(text: string | undefined): RuntimeSessionOptions["limits"] {
  if (text === undefined) return undefined;
  const parts = [...text.trim().matchAll(/([0-9]+(?:\.[0-9]+)?)([smh])/g)];
  const isWhole = parts.map(([part]) => part).join("") === text.trim() && parts.length > 0;
  const seconds = isWhole
    ? parts.reduce((sum, [, number, unit = ""]) => sum + Number(number) * (secondsPerUnit.get(unit) ?? 0), 0)
    : Number(text.trim() === "" ? Number.NaN : text);
  if (Number.isFinite(seconds) && seconds > 0) return { tree: { seconds } };
  throw misuse(`--max-time needs a duration such as 90s, 10m or 1h30m, but got ${JSON.stringify(text)}.`);
}

function textOrFile(
  text: string | undefined,
  file: string | undefined,
  option: string,
  cwd: string,
): string | undefined {
  if (file === undefined) return text;
  if (text !== undefined) throw misuse(`${option} and ${option}-file cannot be given together.`);
  return readGiven(`${option}-file`, resolve(cwd, file));
}

function readGiven(option: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw misuse(`${option} names a file that cannot be read: ${file}.`, "Check the path.");
  }
}

function readSchema(given: string, cwd: string): Readonly<Record<string, unknown>> {
  const text = given.trimStart().startsWith("{") ? given : readGiven("--json-schema", resolve(cwd, given));
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Reported below together with values that are JSON but no schema.
  }
  throw misuse(
    "--json-schema is not a JSON Schema object.",
    'Write it inline as {"type":"object",…}, or name a file.',
  );
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function withoutUndefined<T extends object>(record: T): Defined<T> {
  // Object.fromEntries forgets which key has which type; the entries come from `record` itself.
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as Defined<T>;
}
