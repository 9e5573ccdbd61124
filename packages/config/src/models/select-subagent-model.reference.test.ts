import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  aliasTable,
  type ModelReference,
  parseModelReference,
  resolveModelReference,
} from "./select-subagent-model.ts";

describe("parseModelReference [DEF-12]", () => {
  test.each<[string, ModelReference]>([
    ["inherit", { type: "inherit" }],
    ["Inherit", { type: "inherit" }],
    ["sonnet", { type: "alias", alias: "sonnet" }],
    [" Opus ", { type: "alias", alias: "opus" }],
    ["sonnet[1m]", { type: "alias", alias: "sonnet", suffix: "[1m]" }],
    ["opusplan", { type: "alias", alias: "opusplan" }],
    ["claude-sonnet-4-20250514", { type: "id", id: "claude-sonnet-4-20250514" }],
    ["claude-sonnet-4-6[1m]", { type: "id", id: "claude-sonnet-4-6[1m]" }],
    ["no-such-model-xyz", { type: "id", id: "no-such-model-xyz" }],
    ["us.anthropic.claude-sonnet-4-v1:0", { type: "id", id: "us.anthropic.claude-sonnet-4-v1:0" }],
    ["arn:aws:bedrock:eu-west-1:1:profile/x", { type: "id", id: "arn:aws:bedrock:eu-west-1:1:profile/x" }],
    ["sonet", { type: "id", id: "sonet", nearest: "sonnet" }],
    ["openai/gpt-5", { type: "provider", provider: "openai", model: "gpt-5" }],
    ["openrouter/meta/llama-4", { type: "provider", provider: "openrouter", model: "meta/llama-4" }],
    ["Ollama/qwen3:8b", { type: "provider", provider: "ollama", model: "qwen3:8b" }],
  ])("%j is an alias, an id or a provider's model", (text, expected) => {
    expect(parseModelReference(text)).toEqual(expected);
  });

  test.each<[string, string | undefined]>([
    ["Claude Sonnet 4", "sonnet"],
    ["haiku|sonnet|opus", undefined],
    ["sonnet, opus", undefined],
    ["{{model}}", undefined],
    ["$MODEL", undefined],
    ["openai/", undefined],
    ["/models/x", undefined],
    ["https://example.com/model", undefined],
    ["", undefined],
  ])("%j is unclear and says why", (text, nearest) => {
    const reference = parseModelReference(text);
    expect(reference).toMatchObject({ type: "unclear", why: expect.any(String) });
    expect(reference.type === "unclear" && reference.nearest).toBe(nearest);
  });

  test("any text is answered, and what is an id is the text itself", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const reference = parseModelReference(text);
        if (reference.type === "id") expect(reference.id).toBe(text.trim());
      }),
    );
  });
});

describe("resolveModelReference [MDL-2]", () => {
  function resolve(text: string, options: Parameters<typeof resolveModelReference>[1] = {}) {
    return resolveModelReference(parseModelReference(text, options.aliases), options);
  }

  test.each<[string, string]>([
    ["sonnet", "claude-sonnet-5"],
    ["opus", "claude-opus-5"],
    ["haiku", "claude-haiku-5-5"],
    ["sonnet[1m]", "claude-sonnet-5[1m]"],
    ["opusplan", "claude-sonnet-5"],
    ["best", "claude-opus-5"],
    ["default", "claude-sonnet-5"],
  ])("the alias %s leads to a current id", (alias, id) => {
    expect(resolve(alias)).toEqual({ type: "model", id });
  });

  test("an alias may mean another model while planning", () => {
    expect(resolve("opusplan", { isPlanning: true })).toEqual({ type: "model", id: "claude-opus-5" });
  });

  test("overrides are followed, to another provider too, and a suffix is not doubled", () => {
    const aliases = aliasTable({
      settings: { opus: "openai/gpt-5" },
      environment: { ANTHROPIC_DEFAULT_SONNET_MODEL: "my-sonnet[1m]" },
    });
    expect(resolve("best", { aliases })).toEqual({ type: "model", id: "gpt-5", provider: "openai" });
    expect(resolve("sonnet[1m]", { aliases })).toEqual({ type: "model", id: "my-sonnet[1m]" });
  });

  test("a full id passes through unchanged", () => {
    expect(resolve("claude-opus-4-5")).toEqual({ type: "model", id: "claude-opus-4-5" });
    expect(resolve("inherit")).toEqual({ type: "inherit" });
  });

  test("aliases that lead in a circle are unclear", () => {
    const aliases = aliasTable({ settings: { opus: "best" } });
    expect(resolve("opus", { aliases })).toMatchObject({ type: "unclear" });
  });
});

test("offline is never an id of a provider, however it is written", () => {
  for (const text of ["offline", " Offline "])
    expect(parseModelReference(text)).toEqual({ type: "provider", provider: "offline", model: "offline" });
});
