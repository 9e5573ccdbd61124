// @io

import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { searchPathOutside, withoutShims } from "@retinue/base/foundation/resolve-program.ts";
import { isPublicVariable } from "./shell/private-name.ts";

interface CommandEnvironmentOptions {
  /** Names that are passed on although the table removes them, because of a setting. */
  readonly pass?: readonly string[];
  /** Variables of this call, such as the session's id. */
  readonly set?: Readonly<Record<string, string>>;
}

/**
 * The environment of a command that a model asked for: the person's own, without what would run code before the
 * command or change what its words mean, and without the keys that pay for the model.
 */
export function commandEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  { pass = [], set = {} }: CommandEnvironmentOptions = {},
): Record<string, string> {
  const passed = new Set(pass);
  const kept = Object.entries(withoutCredentials(environment)).flatMap(([name, value]): [string, string][] =>
    value === undefined || (isRemoved(name) && !passed.has(name)) ? [] : [[name, value]],
  );
  return Object.fromEntries([...kept, ...Object.entries(fixed), ...Object.entries(set)]);
}

/**
 * The environment of a command that runs without a question because it only reads: nothing but what is known to steer
 * no program, and a search path without folders that the command's own project could fill.
 */
export function readOnlyEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  {
    workingDirectories,
    set = {},
  }: { readonly workingDirectories: readonly string[]; readonly set?: Readonly<Record<string, string>> },
): Record<string, string> {
  const kept = Object.entries(environment).flatMap(([name, value]): [string, string][] =>
    value !== undefined && isPublicVariable(name) ? [[name, value]] : [],
  );
  return {
    ...Object.fromEntries([...kept, ...Object.entries(fixed), ...Object.entries(set)]),
    PATH: withoutShims(searchPathOutside(environment["PATH"], workingDirectories)),
    // Git fetches nothing, whatever a repository says.
    GIT_ALLOW_PROTOCOL: "none",
    GIT_NO_LAZY_FETCH: "1",
    GIT_OPTIONAL_LOCKS: "0",
  };
}

function isRemoved(name: string): boolean {
  return removedNames.has(name) || /^(?:LD_|DYLD_|BASH_FUNC_)/.test(name) || isProviderKey(name);
}

/**
 * The environment of a program of the person's own, such as a hook: all of it, unless they asked for credentials to stay
 * here (`CLAUDE_CODE_SUBPROCESS_ENV_SCRUB`).
 */
export function withoutCredentials(
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  if (!/^(?:1|true|yes|on)$/i.test(environment["CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"]?.trim() ?? ""))
    return environment;
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !isProviderKey(name) && !cloudCredential.test(name)),
  );
}

/** What clouds and their machines for builds know a program by. */
const cloudCredential =
  /^(?:AWS|AZURE|ARM|GOOGLE|GCP|GCLOUD|CLOUDSDK|ALIBABA_CLOUD|OCI|ACTIONS)_\w*(?:KEY|KEY_ID|TOKEN|TOKEN_FILE|TOKEN_REQUEST_URL|SECRET|CREDENTIALS?|PASSWORD|CERTIFICATE_PATH)$/;

/** Whether a variable holds what pays for the model, or opens this product itself; no file of a project gets it unasked. */
export function isProviderKey(name: string): boolean {
  return keyPatterns.some((pattern) => pattern.test(name));
}

/** No terminal, no pager, no editor: nothing may wait for a person. */
const fixed: Readonly<Record<string, string>> = {
  CLAUDECODE: "1",
  CLAUDE_CODE_CHILD_SESSION: "1",
  TERM: "dumb",
  PAGER: "cat",
  GIT_PAGER: "cat",
  MANPAGER: "cat",
  GIT_EDITOR: "true",
  GIT_TERMINAL_PROMPT: "0",
};

const removedNames: ReadonlySet<string> = new Set(
  `BASH_ENV ENV PROMPT_COMMAND PS0 PS4 SHELLOPTS BASHOPTS BASH_XTRACEFD BASH_COMPAT POSIXLY_CORRECT CDPATH GLOBIGNORE
  IFS EXECIGNORE HISTFILE NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE`.split(/\s+/),
);

/** Whose models are paid for by a key; what follows the name says that it is one. */
const providers =
  `AI_GATEWAY AI21 ALEPH_ALPHA ALIBABA ANTHROPIC ANYSCALE ARK ASSEMBLYAI AZURE AZURE_AI AZURE_OPENAI BASETEN BEDROCK
  BFL CEREBRAS CHUTES CLAUDE CLAUDE_CODE CLOUDFLARE_AI CO CODESTRAL COHERE DASHSCOPE DEEPGRAM DEEPINFRA DEEPSEEK DOUBAO
  ELEVENLABS FAL FIREWORKS FRIENDLI GEMINI GITHUB_MODELS GOOGLE GOOGLE_AI GOOGLE_GENERATIVE_AI GOOGLE_VERTEX GROK GROQ HELICONE HF HUGGINGFACE
  HUGGING_FACE HUGGINGFACEHUB HUGGING_FACE_HUB HYPERBOLIC HYPERBOLIC_AI INCEPTION INFERENCE JINA KIMI LAMBDA LANGDOCK LEPTON LITELLM LLAMA LLM
  LMSTUDIO LUMA MINIMAX MISTRAL MODAL MOONSHOT MORPH NEBIUS NOUS NOVITA NVIDIA NVIDIA_NIM OLLAMA OPENAI OPENAI_COMPATIBLE OPENCODE OPENROUTER
  PARASAIL PERPLEXITY PORTKEY PREDIBASE QIANFAN QWEN REKA REPLICATE REQUESTY RUNPOD SAMBANOVA SILICONFLOW STABILITY
  STEPFUN TARGON TENCENT TOGETHER TOGETHERAI TOGETHER_AI UPSTAGE V0 VENICE VERCEL_AI_GATEWAY VERTEX VERTEX_AI VOLCENGINE VOYAGE WATSONX WRITER XAI
  YI ZAI ZHIPU ZHIPUAI`
    .split(/\s+/)
    .join("|");

const keyPatterns: readonly RegExp[] = [
  new RegExp(
    `^(?:${providers})(?:_\\w+)?_(?:(?:API|ADMIN|ACCESS|SECRET|AUTH|SERVICE|PROJECT|SUBSCRIPTION)_?KEY(?:_?\\d+)?|(?:\\w+_)?(?:TOKEN|SECRET))$`,
  ),
  /^(?:ANTHROPIC|CLAUDE|CLAUDE_CODE|OPENAI)_\w*(?:KEY|TOKEN|SECRET|HEADERS|PASSWORD|PASSPHRASE|CREDENTIALS?)$/,
  /^HF_TOKEN$/,
  /^AWS_BEARER_TOKEN_\w+$/,
  /^MCP_CLIENT_SECRET$/,
  /^RETINUE_\w*(?:TOKEN|KEY|SECRET)$/,
  // What its own telemetry is sent with.
  /^OTEL_EXPORTER_OTLP_(?:[A-Z]+_)?HEADERS$/,
];

export interface Shell {
  readonly file: string;
  /** What keeps a person's own start files out of it. */
  readonly options: readonly string[];
  /** What a model should know about it; absent for a bash. */
  readonly note?: string;
}

/** The shell that runs commands: a bash, whatever the person's own shell is; a plain sh where there is none. */
export async function findShell(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Shell | undefined> {
  const windows = process.platform === "win32";
  const bash = await firstRunnable(windows ? bashOnWindows(environment) : bashOnUnix(environment));
  if (bash !== undefined) return { file: bash, options: ["--norc", "--noprofile"] };
  const plain = windows ? undefined : await firstRunnable(["/bin/sh", "/usr/bin/sh"]);
  if (plain === undefined) return undefined;
  return { file: plain, options: [], note: "There is no bash on this machine; the command ran in sh." };
}

function bashOnUnix(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const known = ["/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin"];
  const own = (environment["PATH"] ?? "").split(":").filter(isAbsolute);
  return [...known, ...own].map((folder) => join(folder, "bash"));
}

function bashOnWindows(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const chosen = environment["CLAUDE_CODE_GIT_BASH_PATH"];
  const folders = [environment["ProgramFiles"], environment["LOCALAPPDATA"]];
  return [
    ...(chosen === undefined ? [] : [chosen]),
    ...folders.flatMap((folder) => (folder === undefined ? [] : [join(folder, "Git", "bin", "bash.exe")])),
  ];
}

async function firstRunnable(files: readonly string[]): Promise<string | undefined> {
  for (const file of files) {
    const isRunnable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isRunnable) return file;
  }
  return undefined;
}

/** What a shell evaluates, and what the agent wrote: the second is only for people who look at the process list. */
export interface ShellText {
  readonly judged: string;
  readonly written: string;
}

/**
 * The arguments that make a shell run a command exactly as it was judged. The command is handed over as a value and
 * evaluated, so nothing in it can swallow what is around it.
 */
export function shellArguments(shell: Shell, text: ShellText): readonly string[] {
  return [...shell.options, "-c", plainScript, "bash", ...valuesOf(text)];
}

/** A shell that expands no file patterns: those of a judged command were expanded when it was judged. */
export function withoutPatterns(shell: Shell): Shell {
  return { ...shell, options: [...shell.options, "-f"] };
}

/** As above; the shell also writes the folder it ends in to descriptor 3, which the command itself cannot reach. */
export function reportingShellArguments(shell: Shell, text: ShellText): readonly string[] {
  return [...shell.options, "-c", reportingScript, "bash", ...valuesOf(text)];
}

function valuesOf({ judged, written }: ShellText): readonly string[] {
  return judged === written || written.length > maxShownLength ? [judged] : [judged, written];
}

/** The folder out of a report: its last line, for an exit trap may have reported twice. */
export function reportedDirectory(report: string): string | undefined {
  const line = report.trimEnd().split("\n").at(-1) ?? "";
  return line.startsWith("/") ? line : undefined;
}

const maxShownLength = 4_096;

const plainScript = ["retinue_command=$1", 'shift "$#"', 'eval "$retinue_command"'].join("\n");

const reportingScript = [
  "trap '{ pwd -P >&3; } 2>/dev/null' EXIT",
  "retinue_command=$1",
  'shift "$#"',
  'eval "$retinue_command" 3>&-',
  "retinue_status=$?",
  "pwd -P >&3",
  "exit $retinue_status",
].join("\n");
