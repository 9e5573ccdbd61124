import { describe, expect, test } from "vitest";
import { aliasTable, shippedAliases } from "./select-subagent-model.ts";

describe("aliasTable [MDL-2]", () => {
  test("without overrides it is the table as shipped", () => {
    expect(aliasTable()).toEqual(shippedAliases);
  });

  test("settings override a line and may add one; the environment overrides settings", () => {
    const table = aliasTable({
      settings: { Sonnet: "claude-sonnet-4-6", opus: "from-settings", cheap: "ollama/qwen3" },
      environment: { ANTHROPIC_DEFAULT_OPUS_MODEL: " from-environment ", ANTHROPIC_DEFAULT_MODEL: "opus" },
    });
    expect(table.get("sonnet")).toBe("claude-sonnet-4-6");
    expect(table.get("opus")).toBe("from-environment");
    expect(table.get("cheap")).toBe("ollama/qwen3");
    expect(table.get("default")).toBe("opus");
    expect(table.get("haiku")).toBe(shippedAliases.get("haiku"));
  });

  test.each([
    { environment: { ANTHROPIC_DEFAULT_SONNET_MODEL: "" } },
    { environment: { ANTHROPIC_DEFAULT_SONNET_MODEL: "Sonnet" } },
    { environment: { ANTHROPIC_DEFAULT_SONNET_MODEL: undefined } },
    { settings: { sonnet: 7, inherit: "claude-opus-5", " ": "x" } },
    { settings: JSON.parse('{"sonnet": null}') as Record<string, unknown> },
  ])("an override that says nothing changes nothing: %j", (sources) => {
    expect(aliasTable(sources)).toEqual(shippedAliases);
  });
});
