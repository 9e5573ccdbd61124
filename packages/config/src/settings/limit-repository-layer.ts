import { isWiderMode, type PermissionMode } from "@retinue/gate/permission-policy.ts";
import { limitSandbox } from "./limit-sandbox.ts";
import {
  type PermissionSettings,
  type PermissionSwitches,
  restrictingSwitches,
} from "./permission-settings.ts";
import { type PlainSettings, restrictingPlainKeys } from "./plain-settings.ts";
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
      (hook) => ({ key: `hooks.${hook.event}`, detail: hook.handler.command, value: hook.handler }),
    ),
    env: new Map(
      sieve.keep(
        [...settings.env],
        ([name]) => options.trusted && !isForbiddenToRepositories(name),
        ([name, value]) => ({ key: `env.${name}`, value }),
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
        ([key, value]) => ({ key, value }),
      ),
    ),
    brokenRestrictions: settings.brokenRestrictions,
  };
  return { settings: limited, heldBack: sieve.heldBack };
}

interface Name {
  readonly key: string;
  readonly detail?: string | undefined;
  readonly value: unknown;
}

interface Sieve {
  readonly heldBack: readonly HeldBack[];
  /** The values that count; each of the others is noted under its name. */
  readonly keep: <T>(values: readonly T[], counts: (value: T) => boolean, name: (value: T) => Name) => T[];
}

function createSieve(reason: HeldBack["reason"], source: HeldBack["source"]): Sieve {
  const heldBack: HeldBack[] = [];
  return {
    heldBack,
    keep: (values, counts, name) =>
      values.filter((value) => {
        if (counts(value)) return true;
        const { detail, ...named } = name(value);
        heldBack.push({ ...named, detail, reason, source });
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
    (value) => ({ key: "permissions.defaultMode", detail: value, value }),
  );
  const switches = sieve.keep(
    Object.entries(permissions.switches),
    ([key, value]) => restricts(key, value) || (trusted && !restrictingSwitches.has(key)),
    ([key, value]) => ({ key: `permissions.${key}`, value }),
  );
  return {
    ...rest,
    allow: sieve.keep(
      permissions.allow,
      () => trusted,
      ({ text }) => ({ key: "permissions.allow", detail: text, value: text }),
    ),
    additionalDirectories: sieve.keep(
      permissions.additionalDirectories,
      () => trusted,
      (directory) => ({ key: "permissions.additionalDirectories", detail: directory, value: directory }),
    ),
    // A part of the entries of a PermissionSwitches object is one again.
    switches: Object.fromEntries(switches) as PermissionSwitches,
    defaultMode: mode,
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
    // Where questions go, and whether they wait, is for the person alone to say.
    if (key === "autoMemoryDirectory" || key === "approvals" || key === "backgroundAgents") return false;
    // The shared file must not switch off the guards that a person has set up for themselves.
    if (key === "disableAllHooks" && value === true && isShared) return false;
    return trusted;
  };
  const { sandbox, ...rest } = Object.fromEntries(
    sieve.keep(Object.entries(plain), counts, ([key, value]) => ({ key, value })),
  ) as PlainSettings;
  if (sandbox === undefined) return rest;
  const limited = limitSandbox(sandbox, trusted);
  sieve.keep(
    limited.held,
    () => false,
    ({ name, value }) => ({ key: `sandbox.${name}`, value }),
  );
  return { ...rest, sandbox: limited.sandbox };
}

/**
 * Variables that decide which code a program loads or where configuration comes from. A repository's settings never
 * set them, however much the folder is trusted: they would reach every command, not only the repository's own.
 */
export function isForbiddenToRepositories(variable: string): boolean {
  const name = variable.toUpperCase();
  if (permittedGitVariables.some((pattern) => pattern.test(name))) return false;
  return names.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}

const names: ReadonlySet<string> = new Set(
  `PATH PATHEXT HOME USERPROFILE XDG_CONFIG_HOME SHELL COMSPEC SHELLOPTS BASHOPTS BASH_ENV ENV ZDOTDIR PROMPT_COMMAND PS4 IFS
  CDPATH FPATH EDITOR VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE BROWSER SSH_ASKPASS SUDO_ASKPASS
  NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED NODE_REPL_EXTERNAL_MODULE
  PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONUSERBASE PYTHONBREAKPOINT PYTHONINSPECT
  RUBYOPT RUBYLIB GEM_HOME GEM_PATH BUNDLE_GEMFILE PERL5OPT PERL5LIB PERLLIB PERL5DB
  JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS
  PHP_INI_SCAN_DIR PHPRC LUA_PATH LUA_CPATH LUA_INIT RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER CARGO_HOME
  GOFLAGS GOENV MAKEFLAGS MAKEFILES GCONV_PATH HOSTALIASES LOCPATH NLSPATH
  RIPGREP_CONFIG_PATH CURL_HOME WGETRC OPENSSL_CONF SSL_CERT_FILE SSL_CERT_DIR
  CLAUDE_CONFIG_DIR CLAUDE_CODE_TMPDIR CLAUDE_CODE_PROJECT_DIR_NAME TMPDIR TEMP TMP`.split(/\s+/),
);

const prefixes = ["LD_", "DYLD_", "GIT_", "BASH_FUNC_", "NPM_CONFIG_", "COR_", "CORECLR_"] as const;

const permittedGitVariables = [
  /^GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)$/,
  /^GIT_TERMINAL_PROMPT$/,
] as const;
