import type { Issue } from "@retinue/base/foundation/diagnostic.ts";
import {
  isRecord,
  isUnreasonablyLarge,
  type JsonRecord,
  kindOf,
  quote,
} from "@retinue/base/foundation/json-record.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import type { PermissionMode } from "@retinue/gate/permission-policy.ts";
import { brokenGuard, type HookRule, isGuardEvent, readHooks } from "../hooks/read-hooks.ts";
import { readSandbox } from "./limit-sandbox.ts";
import {
  holdsRules,
  meansNarrowMode,
  noPermissions,
  type PermissionSettings,
  readPermissions,
  restrictingSwitches,
  restrictsAnything,
} from "./permission-settings.ts";
import { isPlainKey, type PlainSettings, readPlainSettings, wrongValue } from "./plain-settings.ts";
import { readMembers, settingMembers } from "./read-members.ts";

/** Where settings come from, lowest rank first. */
export const settingsScopes = ["user", "project", "local", "flags", "managed"] as const;
export type SettingsScope = (typeof settingsScopes)[number];

/** One settings file, understood. */
export interface Settings {
  readonly permissions: PermissionSettings;
  readonly hooks: readonly HookRule[];
  readonly env: ReadonlyMap<string, string>;
  readonly plain: PlainSettings;
  /** Keys that are not known here, untouched. */
  readonly extra: ReadonlyMap<string, unknown>;
  /** Deny and ask rules that could not be understood: as long as there is one, nothing may run unattended. */
  readonly brokenRestrictions: readonly string[];
}

/** The content of a settings file, as a program writes it; every key is checked as in a file. */
export interface SettingsInput extends PlainSettings {
  readonly permissions?:
    | {
        readonly allow?: readonly string[] | undefined;
        readonly ask?: readonly string[] | undefined;
        readonly deny?: readonly string[] | undefined;
        readonly defaultMode?: PermissionMode | undefined;
        readonly additionalDirectories?: readonly string[] | undefined;
        readonly [other: string]: unknown;
      }
    | undefined;
  /** By event: matchers with their handlers. */
  readonly hooks?: Readonly<Record<string, readonly object[]>> | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Keys of newer versions. */
  readonly [other: string]: unknown;
}

export interface SettingsReading {
  readonly settings: Settings;
  readonly issues: readonly Issue[];
}

/** Reads the value of a settings file. Never throws: what is wrong is left out and reported. */
export function readSettings(value: unknown, options: { readonly scope: SettingsScope }): SettingsReading {
  if (!isRecord(value)) {
    return unusable(
      "settings-not-an-object",
      `A settings file must be an object, but here it is ${kindOf(value)}.`,
    );
  }
  if (isUnreasonablyLarge(value)) {
    return unusable(
      "settings-too-large",
      "This settings file is nested too deeply or has too many entries to be read.",
    );
  }
  const permissions = readPermissions(value["permissions"]);
  const hooks = readHooks(value["hooks"]);
  const env = readEnv(value["env"]);
  const guards = hooks.issues.flatMap((issue) => brokenGuard(issue) ?? []);
  const sandbox = readSandbox(value["sandbox"]);
  const plain = readPlainSettings({ ...value, ...sandbox.read }, options.scope === "managed");
  const extra = Object.entries(value).filter(([key]) => !ownReaders.has(key) && !isPlainKey(key));
  const misplaced = extra.filter(([key, written]) => isMisplacedRestriction(key, written));
  return {
    settings: {
      permissions: permissions.permissions,
      hooks: hooks.hooks,
      env: env.env,
      plain: plain.settings,
      extra: new Map(extra),
      brokenRestrictions: [
        ...permissions.brokenRestrictions,
        ...plain.broken,
        ...sandbox.broken,
        ...guards,
        ...misplaced.map(([key]) => key),
      ],
    },
    issues: [
      ...permissions.issues,
      ...hooks.issues.map((issue) => (brokenGuard(issue) === undefined ? issue : asError(issue))),
      ...env.issues,
      ...plain.issues,
      ...sandbox.issues,
      ...issuesOfMembers(value, { reported: [...plain.issues, ...sandbox.issues], scope: options.scope }),
      ...misplaced.map(([key]) => misplacedRestriction(key)),
    ],
  };
}

/** Of what another reader has reported nothing is repeated. */
function issuesOfMembers(
  value: JsonRecord,
  { reported, scope }: { readonly reported: readonly Issue[]; readonly scope: SettingsScope },
): readonly Issue[] {
  const reportedPaths = new Set(reported.map(({ path }) => path.join(".")));
  return Object.keys(settingMembers)
    .filter((key): key is keyof typeof settingMembers => Object.hasOwn(value, key))
    .flatMap((key) => readMembers(key, value[key], scope === "managed"))
    .filter(({ path }) => !reportedPaths.has(path.join(".")) && !reportedPaths.has(String(path[0])));
}

const emptySettings: Settings = {
  permissions: noPermissions,
  hooks: [],
  env: new Map(),
  plain: {},
  extra: new Map(),
  brokenRestrictions: [],
};

const ownReaders: ReadonlySet<string> = new Set(["permissions", "hooks", "env"]);

/** A guard that does not run leaves open what it should close. */
function asError(issue: Issue): Issue {
  return { ...issue, severity: "error" };
}

/** What should restrict, under a key that has no effect where it is: `deny` at the top, `Permissions`, `permisions`. */
function isMisplacedRestriction(key: string, value: unknown): boolean {
  const bare = key.toLowerCase().replace(/[-_]/g, "");
  if (bare === "deny" || bare === "ask" || bare === "disallowedtools") return holdsRules(value);
  switch (meantKey(key)) {
    case undefined:
      return false;
    case "permissions":
      return isRecord(value) && restrictsAnything(value);
    case "sandbox":
      return value === true || (isRecord(value) && Object.keys(value).length > 0);
    case "hooks":
      return readHooks(value).hooks.some(({ event }) => isGuardEvent(event));
    case "defaultMode":
    case "permissionMode":
      return meansNarrowMode(value);
    default:
      return value === true || value === "true" || value === "disable";
  }
}

const restrictingKeys: readonly string[] = [
  "permissions",
  "sandbox",
  "hooks",
  "defaultMode",
  "permissionMode",
  ...restrictingSwitches,
];

/** The setting that restricts and is nearly written so. */
function meantKey(key: string): string | undefined {
  return nearestName(key, restrictingKeys, 2);
}

function misplacedRestriction(key: string): Issue {
  return {
    severity: "error",
    code: "misplaced-restriction",
    message: `${quote(key)} is meant to restrict something, but is not a setting at this level; what it should restrict would stay allowed.`,
    advice: placeAdvice(key),
    path: [key],
  };
}

function placeAdvice(key: string): string {
  const meant = meantKey(key);
  if (meant === "sandbox" || meant === "hooks") return `Did you mean "${meant}"?`;
  if (meant === undefined || meant === "permissions")
    return 'Write the rules as {"permissions": {"deny": […], "ask": […]}}.';
  const name = meant === "permissionMode" ? "defaultMode" : meant;
  return `Write it inside "permissions": {"permissions": {"${name}": …}}.`;
}

function unusable(code: string, message: string): SettingsReading {
  return {
    settings: { ...emptySettings, brokenRestrictions: ["the whole file"] },
    issues: [
      {
        severity: "error",
        code,
        message: `${message} None of it was used.`,
        advice: "Write one JSON object.",
        path: [],
      },
    ],
  };
}

function readEnv(value: unknown): {
  readonly env: ReadonlyMap<string, string>;
  readonly issues: readonly Issue[];
} {
  const env = new Map<string, string>();
  if (value === undefined || value === null) return { env, issues: [] };
  if (!isRecord(value)) return { env, issues: [wrongValue("env", "an object of strings", value)] };
  const issues: Issue[] = [];
  for (const [name, written] of Object.entries(value)) {
    const text = typeof written === "number" || typeof written === "boolean" ? String(written) : written;
    if (!/^[^=\0]+$/.test(name)) issues.push(badName(name));
    else if (typeof text !== "string" || text.includes("\0")) {
      issues.push(wrongValue(name, "a string", written, ["env", name]));
    } else env.set(name, text);
  }
  return { env, issues };
}

function badName(name: string): Issue {
  return {
    severity: "warning",
    code: "wrong-setting-value",
    message: `${quote(name)} cannot be the name of an environment variable; it was not used.`,
    advice: "Remove it, or write a name of letters, digits and underscores.",
    path: ["env", name],
  };
}
