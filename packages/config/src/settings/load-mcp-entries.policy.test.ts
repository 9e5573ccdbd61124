import { describe, expect, test } from "vitest";
import type { McpScope, McpTransport } from "../mcp/mcp-transport.ts";
import { readMcpPolicy, refuseByPolicy } from "./load-mcp-entries.ts";
import { readSettings, type SettingsScope } from "./settings.ts";
import { mergeSettings } from "./settings-layer.ts";

function policyOf(settings: Partial<Record<SettingsScope, Readonly<Record<string, unknown>>>>) {
  const layers = Object.entries(settings).map(([scope, value]) => ({
    // The keys of the record are scopes.
    source: { scope: scope as SettingsScope, anchor: "/", file: `${scope}.json` },
    settings: readSettings(value, { scope: scope as SettingsScope }).settings,
  }));
  return readMcpPolicy(mergeSettings(layers, { trusted: true }));
}

const stdio = (...words: readonly string[]): McpTransport => ({
  type: "stdio",
  command: words[0] ?? "",
  args: words.slice(1),
  env: {},
});
const http = (url: string): McpTransport => ({ type: "http", url, headers: {} });
const judge = (
  settings: Parameters<typeof policyOf>[0],
  form: McpTransport,
  { name = "github", scope = "user" as McpScope } = {},
) => refuseByPolicy({ name, scope, forms: [form] }, policyOf(settings).policy);

describe("[MCP-1] a list of denied servers", () => {
  test.each([
    [{ serverName: "github" }, stdio("x")],
    [{ serverName: "git hub" }, stdio("x"), "git_hub"],
    [{ serverCommand: ["npx", "-y", "x"] }, stdio("npx", "-y", "x")],
    [{ serverUrl: "https://*.example.com/*" }, http("https://mcp.example.com/x")],
    [{ serverUrl: "https://evil.org" }, http("https://evil.org:8443/anything")],
  ])("forbids %j", (entry, form, name = "github") => {
    expect(judge({ user: { deniedMcpServers: [entry] } }, form, { name })).toMatch(/denied/);
    expect(
      judge({ managed: { deniedMcpServers: [entry], allowedMcpServers: [entry] } }, form, { name }),
    ).toMatch(/denied/);
  });

  test("counts for the organisation's own servers too, and leaves others alone", () => {
    const denied = { user: { deniedMcpServers: [{ serverName: "github" }] } };
    expect(judge(denied, stdio("x"), { scope: "managed" })).toMatch(/denied/);
    expect(judge(denied, stdio("x"), { name: "gitlab" })).toBeUndefined();
  });

  test("with an entry that names nothing is a problem of its file", () => {
    const { diagnostics } = policyOf({ user: { deniedMcpServers: [{ server: "x" }] } });
    expect(diagnostics).toMatchObject([{ severity: "error", code: "mcp-policy-entry", file: "user.json" }]);
  });
});

describe("[MCP-1] a list of allowed servers", () => {
  test("lets nothing through when it is empty", () => {
    expect(judge({ managed: { allowedMcpServers: [] } }, stdio("x"))).toMatch(/does not name/);
  });

  test("goes by the program where it names programs, whatever a server calls itself", () => {
    const managed = { allowedMcpServers: [{ serverName: "github" }, { serverCommand: ["npx", "good"] }] };
    expect(judge({ managed }, stdio("npx", "good"), { name: "other" })).toBeUndefined();
    expect(judge({ managed }, stdio("npx", "good", "--eval"))).toMatch(/does not name/);
    expect(judge({ managed }, http("https://a.example"))).toBeUndefined();
  });

  test.each([
    ["https://*.example.com/*", "https://mcp.example.com/v1", true],
    ["https://*.example.com/*", "https://evil.org/.example.com/", false],
    ["https://*.example.com/*", "https://mcp.example.com@evil.org/", false],
    ["https://*.example.com/*", "https://user:word@mcp.example.com/", false],
    ["https://*.example.com/*", "http://mcp.example.com/", false],
    ["https://mcp.example.com/*", "https://mcp.example.com:8443/x", false],
    ["https://mcp.example.com:8443/*", "https://mcp.example.com:8443/x", true],
    ["https://mcp.example.com:443/*", "https://MCP.example.com/x", true],
    ["https://mcp.example.com", "https://mcp.example.com/other", false],
  ])("with %s answers %s with %s", (serverUrl, url, isAllowed) => {
    const answer = judge({ managed: { allowedMcpServers: [{ serverUrl }] } }, http(url));
    expect(answer === undefined).toBe(isAllowed);
  });

  test("of a person does not count where the organisation says that only its own does", () => {
    const user = { allowedMcpServers: [{ serverName: "github" }] };
    expect(judge({ user }, stdio("x"))).toBeUndefined();
    expect(judge({ user, managed: { allowManagedMcpServersOnly: true } }, stdio("x"))).toMatch(
      /does not name/,
    );
    const managed = { allowManagedMcpServersOnly: true };
    expect(judge({ user, managed }, stdio("x"), { scope: "managed" })).toBeUndefined();
  });
});

test("[MCP-1] servers can be left to plugins and the organisation", () => {
  for (const strictPluginOnlyCustomization of [true, ["mcp"]]) {
    const managed = { strictPluginOnlyCustomization };
    expect(judge({ managed }, stdio("x"))).toMatch(/plugins/);
    expect(judge({ managed }, stdio("x"), { scope: "plugin" })).toBeUndefined();
    expect(judge({ managed }, stdio("x"), { scope: "managed" })).toBeUndefined();
  }
  expect(judge({ managed: { strictPluginOnlyCustomization: ["hooks"] } }, stdio("x"))).toBeUndefined();
});
