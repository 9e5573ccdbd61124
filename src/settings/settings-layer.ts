import type { HookRule } from "../hooks/read-hooks.ts";
import type { WrittenRule } from "./permission-settings.ts";
import type { Settings, SettingsScope } from "./settings.ts";

/** One place settings came from. */
export interface SettingsSource {
  readonly scope: SettingsScope;
  readonly file?: string;
  /** The directory that a rule such as `Edit(/src/**)` of this source starts at. */
  readonly anchor: string;
}

export interface SettingsLayer {
  readonly source: SettingsSource;
  /** Somebody without the right to could have written it, so that it may only restrict. */
  readonly isUnsafe?: boolean;
  readonly settings: Settings;
}

export interface SourcedRule extends WrittenRule {
  readonly source: SettingsSource;
}

export interface SourcedHook {
  readonly hook: HookRule;
  readonly source: SettingsSource;
}

/** A setting that is in a file and does not count, and why. */
export interface HeldBack {
  /** `permissions.allow`, `env.PATH`, `hooks.Stop` … */
  readonly key: string;
  /** The rule, directory or command it is about, where the key alone does not say. */
  readonly detail?: string;
  /** What was written there; for a hook its handler. */
  readonly value: unknown;
  readonly reason:
    | "folder-not-trusted"
    | "never-from-a-repository"
    | "managed-settings-forbid"
    | "others-can-write";
  readonly source: SettingsSource;
}

/** Files inside the working folder may be anybody's, `settings.local.json` too: a repository can carry one. */
export function isFromRepository(scope: SettingsScope): boolean {
  return scope === "project" || scope === "local";
}
