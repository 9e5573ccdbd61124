import { describe, expect, test } from "vitest";
import { aliasTable, selectMainModel, selectSubagentModel } from "./select-subagent-model.ts";

const parent = { id: "claude-opus-4-8" };

describe("selectSubagentModel [MDL-1]", () => {
  test.each([
    [{ call: "haiku", definition: "sonnet", variable: "fable" }, "claude-haiku-5-5", "call"],
    [{ definition: "sonnet", variable: "fable" }, "claude-sonnet-5", "definition"],
    [{ definition: "inherit", variable: "fable" }, "claude-fable-5", "subagent-variable"],
    [{ variable: "fable" }, "claude-fable-5", "subagent-variable"],
    [{ definition: "inherit" }, "claude-opus-4-8", "parent"],
    [{ call: "inherit", definition: "sonnet" }, "claude-sonnet-5", "definition"],
    [{ call: "  ", definition: "" }, "claude-opus-4-8", "parent"],
    [{}, "claude-opus-4-8", "parent"],
    [{ variable: "inherit" }, "claude-opus-4-8", "parent"],
    [{ call: "claude-sonnet-4-20250514" }, "claude-sonnet-4-20250514", "call"],
  ])("%j is %s, from the %s", (mentions, id, origin) => {
    const selection = selectSubagentModel({ ...mentions, parent });
    expect(selection.model.id).toBe(id);
    expect(selection.origin).toBe(origin);
  });

  test("another provider's model keeps its provider", () => {
    expect(selectSubagentModel({ call: "ollama/qwen3:8b", parent }).model).toEqual({
      id: "qwen3:8b",
      provider: "ollama",
    });
    expect(selectSubagentModel({ parent: { id: "gpt-5", provider: "openai" } })).toMatchObject({
      model: { id: "gpt-5", provider: "openai" },
      written: "openai/gpt-5",
    });
  });

  test("it says what was named too and did not count", () => {
    const selection = selectSubagentModel({ call: "haiku", definition: "sonnet", variable: "fable", parent });
    expect(selection.written).toBe("haiku");
    expect(selection.overrode).toEqual([
      { origin: "definition", written: "sonnet" },
      { origin: "subagent-variable", written: "fable" },
    ]);
    expect(selectSubagentModel({ call: "haiku", definition: "inherit", parent }).overrode).toEqual([]);
  });

  test("what cannot be understood is reported, and the next one counts", () => {
    expect(selectSubagentModel({ call: "Claude Sonnet 4", definition: "haiku", parent })).toMatchObject({
      origin: "definition",
      model: { id: "claude-haiku-5-5" },
      unclear: [{ origin: "call", written: "Claude Sonnet 4", nearest: "sonnet", why: expect.any(String) }],
    });
  });

  test("with the force variable calls and definitions are ignored", () => {
    const mentions = { call: "haiku", definition: "sonnet", isForced: true, parent };
    expect(selectSubagentModel({ ...mentions, variable: "fable" }).model.id).toBe("claude-fable-5");
    expect(selectSubagentModel(mentions).origin).toBe("parent");
  });

  test.each([
    [{ call: "opus" }, "claude-opus-4-8[1m]"],
    [{ definition: "opus" }, "claude-opus-4-8[1m]"],
    [{ variable: "opus" }, "claude-opus-5"],
    [{ call: "sonnet" }, "claude-sonnet-5"],
    [{ call: "claude-opus-5" }, "claude-opus-5"],
    [{ call: "sonnet[1m]" }, "claude-sonnet-5[1m]"],
  ])("an alias of the parent's family in a call or definition is the parent's exact model: %j", (mentions, id) => {
    expect(selectSubagentModel({ ...mentions, parent: { id: "claude-opus-4-8[1m]" } }).model.id).toBe(id);
  });

  test("an alias that settings point elsewhere is not the parent's model", () => {
    const aliases = aliasTable({ settings: { opus: "ollama/opus-like" } });
    expect(selectSubagentModel({ call: "opus", aliases, parent }).model).toEqual({
      id: "opus-like",
      provider: "ollama",
    });
  });
});

describe("selectMainModel [MDL-1] [MDL-2]", () => {
  test.each([
    [{ flag: "opus", definition: "haiku", variable: "sonnet", settings: "fable" }, "claude-opus-5", "flag"],
    [{ definition: "haiku", variable: "sonnet", settings: "fable" }, "claude-haiku-5-5", "definition"],
    [{ definition: "inherit", variable: "sonnet", settings: "fable" }, "claude-sonnet-5", "variable"],
    [{ settings: "fable" }, "claude-fable-5", "settings"],
    [{}, "claude-sonnet-5", "default"],
    [{ flag: "opusplan", isPlanning: true }, "claude-opus-5", "flag"],
  ])("%j is %s, from the %s", (mentions, id, origin) => {
    expect(selectMainModel(mentions)).toMatchObject({ model: { id }, origin });
  });

  test("the default follows the alias table, and a broken one does not leave us without a model", () => {
    const aliases = aliasTable({ environment: { ANTHROPIC_DEFAULT_SONNET_MODEL: "claude-sonnet-4-6" } });
    expect(selectMainModel({ aliases }).model.id).toBe("claude-sonnet-4-6");
    const circle = aliasTable({ settings: { default: "best", best: "default" } });
    expect(selectMainModel({ aliases: circle }).model.id).toBe("claude-sonnet-5");
  });
});
