import type { ChosenModel } from "./select-subagent-model.ts";

/** Which program asks a model, and why that one, as sentences for people. */
export type AdapterChoice =
  | { readonly adapter: "anthropic" | "ai-sdk" | "offline"; readonly why: string }
  | { readonly adapter: "none"; readonly why: string; readonly advice: string };

const setKey = "Set ANTHROPIC_API_KEY, or name another provider's model as provider/model.";

/** Chooses by the provider a model is named with, and else by what is configured; with nothing configured, offline. */
export function chooseAdapter(
  { id, provider }: ChosenModel,
  environment: Readonly<Record<string, string | undefined>>,
  hasHelper = false,
): AdapterChoice {
  if (provider === "offline") {
    return { adapter: "offline", why: "The offline model was asked for by name." };
  }
  if (provider !== undefined && provider !== "anthropic") {
    return { adapter: "ai-sdk", why: `${provider}/${id} names the provider ${provider}.` };
  }
  const configured = whatIsConfigured(environment, hasHelper);
  if (configured !== undefined) {
    return { adapter: "anthropic", why: `${id} is asked of Anthropic's API, because ${configured} is set.` };
  }
  if (provider === "anthropic") {
    return { adapter: "none", why: `anthropic/${id} needs a key, and none is set.`, advice: setKey };
  }
  return {
    adapter: "offline",
    why: `No provider is configured, so the offline model answers in place of ${id}. ${setKey}`,
  };
}

function whatIsConfigured(
  environment: Readonly<Record<string, string | undefined>>,
  hasHelper: boolean,
): string | undefined {
  const isSet = (name: string): boolean => (environment[name] ?? "").trim() !== "";
  return (
    ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"].find(isSet) ??
    (hasHelper ? "the setting apiKeyHelper" : undefined) ??
    ["ANTHROPIC_BASE_URL"].find(isSet)
  );
}
