import { searchPathOutside } from "../../foundation/search-path-outside.ts";
import { isPublicVariable } from "../../permissions/shell/private-name.ts";

export interface CommandEnvironmentOptions {
  /** Names that are passed on although the table removes them, because a setting says so. */
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
  const kept = Object.entries(environment).flatMap(([name, value]): [string, string][] =>
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
    PATH: searchPathOutside(environment["PATH"], workingDirectories),
  };
}

function isRemoved(name: string): boolean {
  return removedNames.has(name) || removedPatterns.some((pattern) => pattern.test(name));
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
  IFS EXECIGNORE HISTFILE NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE
  ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_CUSTOM_HEADERS CLAUDE_CODE_OAUTH_TOKEN AWS_BEARER_TOKEN_BEDROCK
  AI_GATEWAY_API_KEY GOOGLE_GENERATIVE_AI_API_KEY GOOGLE_API_KEY GEMINI_API_KEY GOOGLE_VERTEX_API_KEY`.split(
    /\s+/,
  ),
);

const removedPatterns: readonly RegExp[] = [
  /^LD_/,
  /^DYLD_/,
  /^BASH_FUNC_/,
  /^(?:AZURE_)?OPENAI_(?:API_KEY|ADMIN_KEY)$/,
  /^(?:AZURE|BASETEN|CEREBRAS|COHERE|DEEPINFRA|DEEPSEEK|FIREWORKS|GROQ|MISTRAL|MOONSHOT|NVIDIA|OLLAMA|OPENROUTER|PERPLEXITY|TOGETHER(?:_AI)?|XAI|ZAI)_API_KEY$/,
];
