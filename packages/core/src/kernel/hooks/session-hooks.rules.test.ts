import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { AgentScope } from "@retinue/config/agents/agent-source.ts";
import type { HookRule } from "@retinue/config/hooks/hook-rule.ts";
import type { SettingsScope } from "@retinue/config/settings/settings.ts";
import { describe, expect, test } from "vitest";
import { collectHookRules } from "./session-hooks.ts";

const hook = (command: string): HookRule => ({ event: "Stop", handler: { type: "command", command } });
const source = (scope: SettingsScope) => ({ scope, anchor: "/" });
const definition = (scope: AgentScope): AgentDefinition => ({
  name: "reviewer",
  description: "",
  prompt: "",
  hooks: [hook("own")],
  source: { scope },
  written: {},
});

function commands(
  plain: object,
  changes: { off?: SettingsScope; scope?: AgentScope; trusted?: boolean } = {},
) {
  const rules = collectHookRules({
    settings: {
      hooks: [
        { hook: hook("user"), source: source("user") },
        { hook: hook("managed"), source: source("managed") },
      ],
      plain,
      sources: new Map(changes.off === undefined ? [] : [["disableAllHooks", source(changes.off)]]),
    },
    plugins: [{ hook: hook("plugin"), origin: { type: "plugin", name: "p", root: "/p" } }],
    definition: definition(changes.scope ?? "user"),
    agentId: "main",
    trusted: changes.trusted ?? false,
  });
  return rules.map((rule) => rule.hook.handler.command);
}

describe("[HKS-2] the hooks of a session", () => {
  const all = ["user", "managed", "plugin", "own"];

  test.each<[string, object, Parameters<typeof commands>[1], readonly string[]]>([
    ["come from everywhere", {}, {}, all],
    ["of a project's agent need trust", {}, { scope: "project" }, ["user", "managed", "plugin"]],
    ["of a project's agent count in a trusted folder", {}, { scope: "project", trusted: true }, all],
    [
      "can be switched off by a person, but for the organisation's",
      { disableAllHooks: true },
      { off: "user" },
      ["managed"],
    ],
    ["can all be switched off by the organisation", { disableAllHooks: true }, { off: "managed" }, []],
    [
      "of plugins and agents give way to managed only",
      { allowManagedHooksOnly: true },
      {},
      ["user", "managed"],
    ],
  ])("%s", (_title, plain, changes, expected) => {
    expect(commands(plain, changes)).toEqual(expected);
  });
});
