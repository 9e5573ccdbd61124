import { isWiderMode } from "../permissions/compare-modes.ts";
import type { PermissionMode } from "../permissions/permission-mode.ts";
import {
  type PermissionSettings,
  type PermissionSwitches,
  restrictingSwitches,
} from "./permission-settings.ts";
import { type PlainSettings, restrictingPlainKeys } from "./plain-settings.ts";
import { isForbiddenToRepositories } from "./repository-environment.ts";
import { limitSandbox } from "./repository-sandbox.ts";
import type { Settings } from "./settings.ts";
import type { HeldBack, SettingsLayer } from "./settings-layer.ts";

export interface LimitOptions {
  readonly trusted: boolean;
  /** The mode that counts without this layer. */
  readonly modeSoFar: PermissionMode;
}

/**
 * What a file from the working folder may say. Before trust it may only restrict; some things it may never say. The same
 * holds for a file of the organisation that others could have written, which is never trusted.
 */
export function limitRepositoryLayer(
  { source, settings, isUnsafe = false }: SettingsLayer,
  options: LimitOptions,
): { readonly settings: Settings; readonly heldBack: readonly HeldBack[] } {
  const untrusted = isUnsafe ? "others-can-write" : "folder-not-trusted";
  const sieve = createSieve(options.trusted ? "never-from-a-repository" : untrusted, source);
  const limited: Settings = {
    permissions: limitPermissions(settings.permissions, options, sieve),
    hooks: sieve.keep(
      settings.hooks,
      () => options.trusted,
      (hook) => [`hooks.${hook.event}`, hook.handler.command],
    ),
    env: new Map(
      sieve.keep(
        [...settings.env],
        ([name]) => options.trusted && !isForbiddenToRepositories(name),
        ([name]) => [`env.${name}`],
      ),
    ),
    plain: limitPlain(settings.plain, sieve, {
      trusted: options.trusted,
      isShared: source.scope === "project",
    }),
    extra: new Map(
      sieve.keep(
        [...settings.extra],
        ([key]) => options.trusted || key === "$schema",
        ([key]) => [key],
      ),
    ),
    brokenRestrictions: settings.brokenRestrictions,
  };
  return { settings: limited, heldBack: sieve.heldBack };
}

type Name = readonly [key: string, detail?: string | undefined];

interface Sieve {
  readonly heldBack: readonly HeldBack[];
  /** The values that count; each of the others is noted under its name. */
  readonly keep: <T>(values: readonly T[], counts: (value: T) => boolean, name: (value: T) => Name) => T[];
}

function createSieve(because: HeldBack["because"], source: HeldBack["source"]): Sieve {
  const heldBack: HeldBack[] = [];
  return {
    heldBack,
    keep: (values, counts, name) =>
      values.filter((value) => {
        if (counts(value)) return true;
        const [key, detail] = name(value);
        heldBack.push({ key, ...(detail === undefined ? {} : { detail }), because, source });
        return false;
      }),
  };
}

function limitPermissions(
  permissions: PermissionSettings,
  options: LimitOptions,
  sieve: Sieve,
): PermissionSettings {
  const { defaultMode, ...rest } = permissions;
  const { trusted } = options;
  const [mode] = sieve.keep(
    defaultMode === undefined ? [] : [defaultMode],
    (value) => mayBeMode(value, options),
    (value) => ["permissions.defaultMode", value],
  );
  const switches = sieve.keep(
    Object.entries(permissions.switches),
    ([key, value]) => restricts(key, value) || (trusted && !restrictingSwitches.has(key)),
    ([key]) => [`permissions.${key}`],
  );
  return {
    ...rest,
    allow: sieve.keep(
      permissions.allow,
      () => trusted,
      (rule) => ["permissions.allow", rule.text],
    ),
    additionalDirectories: sieve.keep(
      permissions.additionalDirectories,
      () => trusted,
      (directory) => ["permissions.additionalDirectories", directory],
    ),
    // A part of the entries of a PermissionSwitches object is one again.
    switches: Object.fromEntries(switches) as PermissionSwitches,
    ...(mode === undefined ? {} : { defaultMode: mode }),
  };
}

function mayBeMode(mode: PermissionMode, { trusted, modeSoFar }: LimitOptions): boolean {
  if (mode === "bypassPermissions" || mode === "auto") return false;
  return trusted || !isWiderMode(mode, modeSoFar);
}

function restricts(key: string, value: unknown): boolean {
  return restrictingSwitches.has(key) && (value === true || value === "disable");
}

function limitPlain(
  plain: PlainSettings,
  sieve: Sieve,
  { trusted, isShared }: { readonly trusted: boolean; readonly isShared: boolean },
): PlainSettings {
  const counts = ([key, value]: [string, unknown]): boolean => {
    if (restrictingPlainKeys.has(key)) return true;
    if (key === "disableSkillShellExecution") return value === true || trusted;
    if (key === "autoMemoryDirectory") return false;
    // The shared file must not switch off the guards that a person has set up for themselves.
    if (key === "disableAllHooks" && value === true && isShared) return false;
    return trusted;
  };
  const { sandbox, ...rest } = Object.fromEntries(
    sieve.keep(Object.entries(plain), counts, ([key]) => [key]),
  ) as PlainSettings;
  if (sandbox === undefined) return rest;
  const limited = limitSandbox(sandbox, trusted);
  sieve.keep(
    limited.held,
    () => false,
    (name) => [`sandbox.${name}`],
  );
  return { ...rest, sandbox: limited.sandbox };
}
