import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parsePermissionMode } from "../../foundation/option-words.ts";
import { isToolEntry } from "../../runtime/options/find-bad-rule.ts";
import type { SessionOptions as RuntimeSessionOptions } from "../../runtime/options/runtime-options.ts";
import { checkSessionOptions } from "./check-session-options.ts";
import { misuse, type SessionOptions } from "./command-context.ts";
import { readSeconds } from "./option-entry.ts";

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
  /** `wait`: what no one can be asked waits in the inbox; `refuse`: it is refused. */
  readonly approvals?: string;
}

const outputFormats = ["text", "json", "stream-json"] as const;
const inputFormats = ["text", "stream-json"] as const;

/** What `retinue -p` was asked to do. The table of options has checked each value; here is checked what they mean together. */
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
  const output = formatOf(outputFormats, options.outputFormat);
  const input = formatOf(inputFormats, options.inputFormat);
  const partial = options.includePartialMessages === true;
  const replay = options.replayUserMessages === true;
  const childText = options.forwardSubagentText === true;
  if (input === "stream-json" && words.length > 0) {
    throw misuse(
      "With --input-format stream-json the prompts come from stdin alone.",
      "Leave out the prompt.",
    );
  }
  checkSessionOptions(session, cwd, options);
  refuseStrayEntries(words, options, session);
  const verbose = session.verbose === true;
  return { output, input, partial, replay, childText, verbose, session: readSessionOptions(options, cwd) };
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

/** One of these, as the table of options has checked; the first where none is given. */
function formatOf<Format extends string>(
  known: readonly [Format, ...Format[]],
  given: string | undefined,
): Format {
  return known.find((format) => format === given) ?? known[0];
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
    permissionMode:
      options.permissionMode === undefined ? undefined : parsePermissionMode(options.permissionMode),
    permissionPromptTool: options.permissionPromptTool,
    skipPermissions: options.dangerouslySkipPermissions,
    tools: readToolNames(options.tools),
    allowedTools: options.allowedTools,
    systemPrompt,
    appendSystemPrompt,
    appendSubagentSystemPrompt,
    maxTurns: options.maxTurns === undefined ? undefined : Number(options.maxTurns),
    maxBudgetUsd: options.maxBudgetUsd === undefined ? undefined : Number(options.maxBudgetUsd),
    limits: timeLimit(options.maxTime),
    resume: options.resume,
    continue: options.continue,
    forkSession: options.forkSession,
    takeOver: options.takeOver,
    sessionId: options.sessionId,
    slashCommands: options.disableSlashCommands === true ? false : undefined,
    output: options.jsonSchema === undefined ? undefined : readSchema(options.jsonSchema, cwd),
  });
}

/** What `--approvals` says, as the runtime takes it; the table of options has checked the word. */
export function readApprovals(text: string | undefined): { readonly approvals?: "inbox" | "refuse" } {
  if (text === undefined) return {};
  return { approvals: text === "wait" ? "inbox" : "refuse" };
}

function timeLimit(text: string | undefined): RuntimeSessionOptions["limits"] {
  const seconds = text === undefined ? undefined : readSeconds(text);
  return seconds === undefined ? undefined : { tree: { seconds } };
}

/** `""` means no built-in tool at all, `default` all of them. */
function readToolNames(text: string | undefined): readonly string[] | undefined {
  if (text === undefined || text.trim() === "default") return undefined;
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
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
