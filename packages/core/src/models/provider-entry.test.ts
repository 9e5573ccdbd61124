import { describe, expect, test } from "vitest";
import { factorySettings, findProvider, knownProviders } from "./provider-entry.ts";

describe("[MDL-3] the table has how each provider is reached", () => {
  test.each([
    ["openai", "@ai-sdk/openai", { OPENAI_API_KEY: "k" }, { apiKey: "k" }],
    ["google", "@ai-sdk/google", { GEMINI_API_KEY: "k" }, { apiKey: "k" }],
    ["bedrock", "@ai-sdk/amazon-bedrock", { AWS_REGION: "eu-west-1" }, { region: "eu-west-1" }],
    ["amazon-bedrock", "@ai-sdk/amazon-bedrock", { AWS_DEFAULT_REGION: "x" }, { region: "x" }],
    ["ollama", "@ai-sdk/openai-compatible", {}, { baseURL: "http://127.0.0.1:11434/v1" }],
    ["lmstudio", "@ai-sdk/openai-compatible", {}, { baseURL: "http://127.0.0.1:1234/v1" }],
    [
      "openrouter",
      "@ai-sdk/openai-compatible",
      { OPENROUTER_API_KEY: "k" },
      { apiKey: "k", baseURL: "https://openrouter.ai/api/v1" },
    ],
  ])("%s comes from %s", (name, packageName, environment, settings) => {
    const entry = findProvider(name, environment);
    expect(entry?.package).toBe(packageName);
    expect(entry && factorySettings(entry, environment)).toMatchObject({ settings, missing: [] });
  });

  test.each([
    ["127.0.0.1", "http://127.0.0.1:11434/v1"],
    ["0.0.0.0:8000", "http://127.0.0.1:8000/v1"],
    ["http://box:11434", "http://box:11434/v1"],
    ["https://box/ollama/v1/", "https://box/ollama/v1"],
    [" ", "http://127.0.0.1:11434/v1"],
  ])("OLLAMA_HOST %j means %s", (host, address) => {
    const environment = { OLLAMA_HOST: host };
    const entry = findProvider("ollama", environment);
    expect(entry && factorySettings(entry, environment).settings["baseURL"]).toBe(address);
  });

  test("openai at another address is spoken to in the protocol that all servers know", () => {
    expect(findProvider("openai", { OPENAI_BASE_URL: "http://box/v1" })?.package).toBe(
      "@ai-sdk/openai-compatible",
    );
    expect(findProvider("openai", { OPENAI_BASE_URL: "https://api.openai.com/v1" })?.package).toBe(
      "@ai-sdk/openai",
    );
  });

  test("what is required and not set is named with every variable that would do", () => {
    const google = findProvider("google", {});
    expect(google && factorySettings(google, {}).missing).toEqual([
      "GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY or GOOGLE_API_KEY",
    ]);
  });

  test("a provider that is not in the table is looked for under the name its package would have", () => {
    expect(findProvider("cohere", {})).toMatchObject({
      package: "@ai-sdk/cohere",
      factories: ["createcohere"],
    });
  });

  test.each([
    "opnai",
    "Google",
    "../../evil",
    "ollamaa",
    "__proto__",
    "constructor!",
  ])("%j is no provider", (name) => {
    expect(findProvider(name, {})).toBeUndefined();
  });

  test("every entry names a package and a factory", () => {
    for (const name of knownProviders()) {
      expect(findProvider(name, {})).toMatchObject({
        package: expect.stringMatching(/^@ai-sdk\//),
        factories: expect.arrayContaining([expect.stringMatching(/^create/)]),
      });
    }
  });
});
