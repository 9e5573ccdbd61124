import { join } from "node:path";
import type { PermissionPolicy, PolicyRule } from "../../src/permissions/decide.ts";
import { parsePermissionMode } from "../../src/permissions/permission-mode.ts";
import { type MergedSettings, mergeSettings } from "../../src/settings/merge-settings.ts";
import { readSettings } from "../../src/settings/settings.ts";
import type { SettingsLayer, SourcedRule } from "../../src/settings/settings-layer.ts";
import { type Fields, isFields, type Roots, type ScopeRules, type SecurityCase } from "./security-case.ts";

/** The settings of a case merged as at a start. */
export function mergeCaseSettings(testCase: SecurityCase, roots: Roots): MergedSettings {
  const managed = testCase.context?.["managed"];
  const layers = [
    layer({ scope: "user", permissions: { ...testCase.rules } }, roots),
    ...(testCase.scopes ?? []).map((scope) => layer(scope, roots)),
    ...(isFields(managed) ? [layer({ scope: "managed", permissions: managed }, roots)] : []),
  ];
  return mergeSettings(layers, { trusted: testCase.trusted ?? true });
}

function layer({ scope, permissions, root }: ScopeRules, roots: Roots): SettingsLayer {
  const anchors = {
    user: join(roots.H, ".claude"),
    managed: "/etc/claude-code",
    project: roots.P,
    local: roots.P,
  };
  return {
    source: { scope, anchor: root ?? anchors[scope], file: `${scope} settings` },
    settings: readSettings({ permissions }, { scope }).settings,
  };
}

/** The policy of the main agent of a case. */
export function mainPolicy(testCase: SecurityCase, settings: MergedSettings, roots: Roots): PermissionPolicy {
  const { permissions } = settings;
  const { context = {}, cwd = roots.P } = testCase;
  const isBelow = cwd === roots.P || cwd.startsWith(`${roots.P}/`);
  const mayBypass =
    permissions.switches.disableBypassPermissionsMode !== "disable" && context["hostAllowsBypass"] !== false;
  const wished = parsePermissionMode(String(context["parentMode"] ?? testCase.mode)) ?? "default";
  const sandbox = sandboxOf(context["sandbox"]);
  return {
    mode: wished === "bypassPermissions" && !mayBypass ? "default" : wished,
    allow: permissions.allow.map(fromSettings),
    ask: permissions.ask.map(fromSettings),
    deny: permissions.deny.map(fromSettings),
    workingDirectories: [
      isBelow ? roots.P : cwd,
      ...(testCase.additionalDirectories ?? []),
      ...permissions.additionalDirectories.map(({ directory }) => directory),
    ],
    home: roots.H,
    platform: testCase.platform ?? "linux",
    trusted: testCase.trusted ?? true,
    ...(sandbox === undefined ? {} : { sandbox }),
  };
}

function fromSettings({ rule, source }: SourcedRule): PolicyRule {
  return { rule, anchor: source.anchor, ...(source.file === undefined ? {} : { from: source.file }) };
}

function sandboxOf(value: unknown): PermissionPolicy["sandbox"] {
  if (!isFields(value) || value["enabled"] !== true) return undefined;
  return {
    autoAllow: value["autoAllow"] === true,
    excludedCommands: texts(value["excludedCommands"]),
    allowUnsandboxed: value["allowUnsandboxedCommands"] !== false,
  };
}

export function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}
