import { nearestName } from "@retinue/base/foundation/nearest-name.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A setting of a provider's factory and the variables it may come from, the first that is set winning. */
export interface ProviderSetting {
  readonly setting: string;
  readonly variables: readonly string[];
  readonly required?: boolean;
  /** An address; one that is written without scheme, port or path takes these from here. */
  readonly byDefault?: string;
}

/** How a provider of the Vercel AI SDK is had: which package, which function makes it, and from which variables. */
export interface ProviderEntry {
  readonly name: string;
  readonly package: string;
  /** Names the factory has or had, the newest first. */
  readonly factories: readonly string[];
  readonly settings: readonly ProviderSetting[];
  /** Given to the factory as they are. */
  readonly fixedSettings?: Readonly<Record<string, unknown>>;
  /** Sent with every request. */
  readonly requestOptions?: Readonly<Record<string, Readonly<Record<string, string | boolean>>>>;
  /** Whether its package sends files inside a tool's result; if not they follow in a user message. */
  readonly takesResultFiles: boolean;
  /** Whether its models know how hard to think; local servers refuse what they do not recognize. */
  readonly takesEffort: boolean;
}

/** The entry for a name as written before the slash in `provider/model`. */
export function findProvider(name: string, environment: Environment): ProviderEntry | undefined {
  if (name === "openai" && isOtherServer(environment["OPENAI_BASE_URL"]))
    return table.get("openai-compatible");
  return table.get(aliases.get(name) ?? name) ?? conventionalEntry(name);
}

export function knownProviders(): readonly string[] {
  return [...table.keys()];
}

export interface FactorySettings {
  readonly settings: Readonly<Record<string, unknown>>;
  /** What is required and not set, as a person would write it. */
  readonly missing: readonly string[];
}

/** What the factory is called with. */
export function factorySettings(entry: ProviderEntry, environment: Environment): FactorySettings {
  const settings: Record<string, unknown> = { ...entry.fixedSettings };
  const missing: string[] = [];
  for (const { setting, variables, required = false, byDefault } of entry.settings) {
    const values = variables.map((name) =>
      Object.hasOwn(environment, name) ? environment[name]?.trim() : "",
    );
    const written = values.find((value) => value !== undefined && value !== "");
    const value =
      written !== undefined && byDefault !== undefined ? completeUrl(written, byDefault) : written;
    if (value !== undefined || byDefault !== undefined) settings[setting] = value ?? byDefault;
    else if (required) missing.push(variables.join(" or "));
  }
  return { settings, missing };
}

const table: ReadonlyMap<string, ProviderEntry> = new Map(
  [
    official("openai", "@ai-sdk/openai", "createOpenAI", [key("OPENAI_API_KEY"), url("OPENAI_BASE_URL")], {
      // Nothing is kept at the provider, so that a conversation can continue from its transcript alone.
      requestOptions: { openai: { store: false } },
    }),
    official("google", "@ai-sdk/google", "createGoogle createGoogleGenerativeAI", [
      key("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
      url("GOOGLE_GENERATIVE_AI_BASE_URL"),
    ]),
    official("vertex", "@ai-sdk/google-vertex", "createGoogleVertex createVertex", [
      { setting: "project", variables: ["GOOGLE_VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT"], required: true },
      { setting: "location", variables: ["GOOGLE_VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION"], required: true },
    ]),
    official("bedrock", "@ai-sdk/amazon-bedrock", "createAmazonBedrock", [
      { setting: "region", variables: ["AWS_REGION", "AWS_DEFAULT_REGION"], required: true },
      { setting: "apiKey", variables: ["AWS_BEARER_TOKEN_BEDROCK"] },
      { setting: "accessKeyId", variables: ["AWS_ACCESS_KEY_ID"] },
      { setting: "secretAccessKey", variables: ["AWS_SECRET_ACCESS_KEY"] },
      { setting: "sessionToken", variables: ["AWS_SESSION_TOKEN"] },
    ]),
    official("azure", "@ai-sdk/azure", "createAzure", [
      key("AZURE_API_KEY"),
      { setting: "resourceName", variables: ["AZURE_RESOURCE_NAME"] },
      url("AZURE_BASE_URL"),
    ]),
    plain("mistral", "createMistral", "MISTRAL_API_KEY"),
    plain("groq", "createGroq", "GROQ_API_KEY"),
    plain("xai", "createXai", "XAI_API_KEY"),
    plain("deepseek", "createDeepSeek", "DEEPSEEK_API_KEY"),
    compatible("openrouter", [
      key("OPENROUTER_API_KEY"),
      url("OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1"),
    ]),
    local("ollama", [
      {
        setting: "baseURL",
        variables: ["OLLAMA_BASE_URL", "OLLAMA_HOST"],
        byDefault: "http://127.0.0.1:11434/v1",
      },
    ]),
    local("lmstudio", [url("LMSTUDIO_BASE_URL", "http://127.0.0.1:1234/v1")]),
    compatible("openai-compatible", [
      { setting: "apiKey", variables: ["OPENAI_API_KEY"] },
      { setting: "baseURL", variables: ["OPENAI_BASE_URL"], required: true },
    ]),
  ].map((entry) => [entry.name, entry]),
);

const aliases: ReadonlyMap<string, string> = new Map([
  ["amazon-bedrock", "bedrock"],
  ["gemini", "google"],
  ["google-vertex", "vertex"],
  ["openai_compatible", "openai-compatible"],
]);

/** Packages of the AI SDK are named alike, so one that came later than this table works too. */
function conventionalEntry(name: string): ProviderEntry | undefined {
  if (!/^[a-z][a-z0-9-]*$/.test(name) || nearestName(name, table.keys()) !== undefined) return undefined;
  const factory = `create${name.replace(/-/g, "")}`;
  return { ...plain(name, factory, ""), settings: [] };
}

function official(
  name: string,
  packageName: string,
  factories: string,
  settings: readonly ProviderSetting[],
  more: Partial<ProviderEntry> = {},
): ProviderEntry {
  const entry = { name, package: packageName, factories: factories.split(" "), settings };
  return { ...entry, takesResultFiles: true, takesEffort: true, ...more };
}

function plain(name: string, factory: string, keyVariable: string): ProviderEntry {
  return official(name, `@ai-sdk/${name}`, factory, [key(keyVariable)], { takesResultFiles: false });
}

function compatible(name: string, settings: readonly ProviderSetting[]): ProviderEntry {
  return official(name, "@ai-sdk/openai-compatible", "createOpenAICompatible", settings, {
    fixedSettings: { name, includeUsage: true },
    takesResultFiles: false,
  });
}

function local(name: string, settings: readonly ProviderSetting[]): ProviderEntry {
  return { ...compatible(name, settings), takesEffort: false };
}

function key(...variables: readonly string[]): ProviderSetting {
  return { setting: "apiKey", variables, required: true };
}

function url(variable: string, byDefault?: string): ProviderSetting {
  return { setting: "baseURL", variables: [variable], byDefault };
}

/** `OLLAMA_HOST` is often no more than a host; where it listens on all addresses, this machine is meant. */
function completeUrl(written: string, byDefault: string): string {
  const usual = new URL(byDefault);
  const hasScheme = /^https?:\/\//.test(written);
  const withScheme = hasScheme ? written : `http://${written}`;
  if (!URL.canParse(withScheme)) return written;
  const address = new URL(withScheme);
  if (address.hostname === "0.0.0.0") address.hostname = usual.hostname;
  if (address.pathname === "/") address.pathname = usual.pathname;
  if (address.port === "" && !hasScheme) address.port = usual.port;
  return address.href.replace(/\/$/, "");
}

/** Servers other than OpenAI's own rarely know its newer protocol, so they are spoken to in the common one. */
function isOtherServer(baseUrl: string | undefined): boolean {
  if (baseUrl === undefined || baseUrl.trim() === "") return false;
  return !URL.canParse(baseUrl) || new URL(baseUrl).hostname !== "api.openai.com";
}
