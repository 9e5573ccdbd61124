import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";
import { readHooksFile } from "@retinue/config/hooks/read-hooks.ts";
import { readMarketplace } from "@retinue/config/plugins/marketplace.ts";
import { type PluginManifest, readPluginManifest } from "@retinue/config/plugins/plugin.ts";
import { readSettings } from "@retinue/config/settings/settings.ts";
import { readRule } from "@retinue/gate/rules/parse-rule.ts";
import { summariseHooks } from "./compare-agent.ts";
import { type CorpusEntry, compareFields, type Mismatch } from "./corpus-manifest.ts";

/** A file that is no JSON is compared by where and how it breaks. */
function compareJson(
  entry: CorpusEntry,
  text: string,
  describe: (value: unknown) => Readonly<Record<string, unknown>>,
): Mismatch[] {
  const { value, diagnostic } = parseJsonDocument(text, entry.file);
  if (diagnostic === undefined) return compareFields(entry.expect, describe(value));
  const kind = /\((\w+)\)\.$/.exec(diagnostic.message)?.[1];
  return compareFields(entry.expect, { loads: false, error: kind, line: diagnostic.line });
}

export function compareHooks(entry: CorpusEntry, text: string): Mismatch[] {
  return compareJson(entry, text, (value) => {
    const { hooks, issues } = readHooksFile(value);
    return { loads: true, hooks: summariseHooks(hooks), warnings: sameCount(entry, "warnings", issues) };
  });
}

export function compareSettings(entry: CorpusEntry, text: string): Mismatch[] {
  return compareJson(entry, text, (value) => {
    const { settings, issues } = readSettings(value, { scope: "project" });
    const permissions = isRecord(value) && isRecord(value["permissions"]) ? value["permissions"] : {};
    const count = (list: string): number => (Array.isArray(permissions[list]) ? permissions[list].length : 0);
    const hookFindings = issues.filter((issue) => issue.path[0] === "hooks");
    return {
      loads: true,
      allow: count("allow"),
      deny: count("deny"),
      ask: count("ask"),
      invalidRules: ["allow", "deny", "ask"].flatMap((list) => malformedRules(permissions[list])),
      defaultMode: settings.permissions?.defaultMode ?? permissions["defaultMode"] ?? null,
      hooks: summariseHooks(settings.hooks ?? []),
      hookWarnings: sameCount(entry, "hookWarnings", hookFindings),
      unknownPermissionKeys: issues
        .filter((issue) => issue.code === "unknown-permission-key")
        .map((issue) => issue.path.at(-1)),
    };
  });
}

/** Rules that no list could hold; one that merely is in the wrong list is well-formed. */
function malformedRules(list: unknown): unknown[] {
  return Array.isArray(list) ? list.filter((rule: unknown) => readRule(rule).type === "invalid") : [];
}

/** The words of a warning are each loader's own; whether there is one is not. */
function sameCount(entry: CorpusEntry, field: string, issues: readonly { severity: string }[]): unknown {
  const expected = entry.expect[field];
  const warned = issues.some((issue) => issue.severity !== "note");
  if (Array.isArray(expected) && expected.length > 0 === warned) return expected;
  return issues;
}

export function comparePlugin(entry: CorpusEntry, text: string): Mismatch[] {
  return compareJson(entry, text, (value) => {
    const { manifest } = readPluginManifest(value);
    return manifest === undefined ? { loads: false } : { loads: true, ...describeManifest(manifest) };
  });
}

function describeManifest(manifest: PluginManifest): Record<string, unknown> {
  const { hooks, mcpServers } = manifest;
  return {
    name: manifest.name ?? null,
    version: manifest.version ?? null,
    agents: manifest.agents?.written ?? null,
    commands: manifest.commands?.written ?? null,
    skills: manifest.skills?.written ?? null,
    hooks: hooks?.inline.length ? summariseHooks(hooks.inline) : (hooks?.written ?? null),
    mcpServers: mcpServers?.inline.size ? [...mcpServers.inline.keys()] : (mcpServers?.written ?? null),
    userConfig: manifest.userConfig === undefined ? null : [...manifest.userConfig.keys()],
  };
}

export function compareMarketplace(entry: CorpusEntry, text: string): Mismatch[] {
  return compareJson(entry, text, (value) => {
    const { marketplace } = readMarketplace(value);
    if (marketplace === undefined) return { loads: false };
    return {
      loads: true,
      name: marketplace.name ?? null,
      pluginRoot: marketplace.pluginRoot ?? null,
      plugins: marketplace.plugins.map(({ name, source, strict }) => ({
        name: name ?? null,
        source: source ?? null,
        strict: strict ?? null,
      })),
    };
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
