import type { Anthropic } from "@anthropic-ai/sdk";
import { abortable } from "../../foundation/abortable.ts";
import { createHttpFetch } from "../create-http-fetch.ts";
import { ModelError } from "../model-error.ts";
import type { StallLimits } from "../stall-watch.ts";

/** Where the provider is, and what proves that we may ask it. */
export interface AnthropicAccess {
  readonly apiKey?: string;
  readonly authToken?: string;
  readonly baseUrl?: string;
  /** Asked for a key before each request; the one that gives it decides how long a key is kept. */
  readonly apiKeyHelper?: () => Promise<string>;
  readonly headers?: Readonly<Record<string, string>>;
  /** How requests travel; absent means our own over node:http. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface AnthropicSender {
  readonly baseUrl: string;
  /** Loads what is needed and asks for the key; the provider is not to blame for the time that takes. */
  prepare(signal: AbortSignal): Promise<Send>;
}

/** Takes the JSON of the request; resolves when the answer begins; its body is a stream of server-sent events. */
export type Send = (
  body: Uint8Array,
  options: { readonly signal: AbortSignal; readonly timeouts: StallLimits },
) => Promise<Response>;

const defaultBaseUrl = "https://api.anthropic.com";

export function createAnthropicSender(access: AnthropicAccess): AnthropicSender {
  const baseUrl = access.baseUrl ?? defaultBaseUrl;
  let client: Promise<Anthropic> | undefined;

  return {
    baseUrl,
    async prepare(signal) {
      client ??= createClient(access, baseUrl);
      const sdk = await abortable(client, signal);
      const helper = helperOf(access);
      const key = helper === undefined ? undefined : await abortable(askHelper(helper), signal);
      // `messages.create` prints warnings about models to the console; the request underneath is the same.
      return (body, { signal: sending, timeouts }) =>
        sdk
          .post("/v1/messages", {
            body,
            stream: true,
            signal: sending,
            timeout: Math.ceil(timeouts.firstTokenMs) + 1000,
            headers: {
              "content-type": "application/json",
              ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
            },
          })
          .asResponse();
    },
  };
}

async function createClient(access: AnthropicAccess, baseUrl: string): Promise<Anthropic> {
  const { Anthropic } = await import("@anthropic-ai/sdk");
  return new Anthropic({
    baseURL: baseUrl,
    ...credential(access),
    // Retries are ours: they see all agents and what the provider asked of each.
    maxRetries: 0,
    logLevel: "off",
    fetch: access.fetch ?? createHttpFetch(),
  });
}

/** The SDK takes one credential. Given none it would look for one on this machine, which could then reach a strange server. */
function credential({ apiKey, authToken, headers = {} }: AnthropicAccess) {
  if (authToken !== undefined) return { authToken, defaultHeaders: headers };
  if (apiKey !== undefined) return { apiKey, defaultHeaders: headers };
  return { apiKey: "none", defaultHeaders: { authorization: null, ...headers } };
}

/** A token or key that is set says more than a helper that could fetch one. */
function helperOf({ apiKey, authToken, apiKeyHelper }: AnthropicAccess): AnthropicAccess["apiKeyHelper"] {
  return apiKey === undefined && authToken === undefined ? apiKeyHelper : undefined;
}

async function askHelper(helper: () => Promise<string>): Promise<string> {
  let key = "";
  try {
    key = (await helper()).trim();
  } catch (error) {
    throw helperError(`failed: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  if (key === "") throw helperError("gave no key");
  return key;
}

function helperError(what: string, cause?: unknown): ModelError {
  return new ModelError("unauthorized", `The apiKeyHelper of your settings ${what}.`, {
    advice: "Run its command by hand and fix it, or set ANTHROPIC_API_KEY instead.",
    ...(cause === undefined ? {} : { cause }),
  });
}
