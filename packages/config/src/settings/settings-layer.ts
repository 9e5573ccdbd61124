import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isWiderMode, type PermissionMode } from "@retinue/gate/permission-policy.ts";
import { formatRule } from "@retinue/gate/rules/parse-rule.ts";
import type { HookRule } from "../hooks/read-hooks.ts";
import { limitSandbox } from "./limit-sandbox.ts";
import {
  type InvalidRule,
  type PermissionSettings,
  type PermissionSwitches,
  restrictingSwitches,
  type WrittenRule,
} from "./permission-settings.ts";
import { type PlainSettings, restrictingPlainKeys } from "./plain-settings.ts";
import { type Settings, type SettingsScope, settingsScopes } from "./settings.ts";

/** One place settings came from. */
export interface SettingsSource {
  readonly scope: SettingsScope;
  readonly file?: string;
  /** The directory that a rule such as `Edit(/src/**)` of this source starts at. */
  readonly anchor: string;
}

export interface SettingsLayer {
  readonly source: SettingsSource;
  /** A user without the right to could have written it, so that it may only restrict. */
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

/** Files inside the working folder may come from a stranger, `settings.local.json` too: a repository can carry one. */
export function isFromRepository(scope: SettingsScope): boolean {
  return scope === "project" || scope === "local";
}

/** All settings as one, and where each came from. */
export interface MergedSettings {
  readonly permissions: MergedPermissions;
  readonly hooks: readonly SourcedHook[];
  readonly env: ReadonlyMap<string, string>;
  readonly plain: PlainSettings;
  readonly extra: ReadonlyMap<string, unknown>;
  /** By dotted name, the source whose value counts: `model`, `env.CI`, `permissions.defaultMode`, `sandbox.enabled`. */
  readonly sources: ReadonlyMap<string, SettingsSource>;
  readonly heldBack: readonly HeldBack[];
  /** With one entry or more, nothing may run unattended: something that should be restricted is not. */
  readonly brokenRestrictions: readonly { readonly text: string; readonly source: SettingsSource }[];
}

export interface MergedPermissions {
  readonly allow: readonly SourcedRule[];
  readonly ask: readonly SourcedRule[];
  readonly deny: readonly SourcedRule[];
  readonly defaultMode?: PermissionMode;
  readonly additionalDirectories: readonly { readonly directory: string; readonly source: SettingsSource }[];
  readonly switches: PermissionSwitches;
  readonly invalidRules: readonly (InvalidRule & { readonly source: SettingsSource })[];
}

/**
 * Puts the layers together: user, project, local, flags, managed, the later over the earlier. Layers of one scope keep
 * the order given. What the working folder's files may not say is left out and listed in `heldBack`.
 */
export function mergeSettings(
  layers: readonly SettingsLayer[],
  { trusted }: { readonly trusted: boolean },
): MergedSettings {
  const limited = limitLayers(inOrder(layers), trusted);
  const { counting, heldBack } = obeyManagedOnly(limited.layers);
  const values = mergeLayerValues(counting);
  const rules = (list: "allow" | "ask" | "deny") =>
    withoutRepeats(
      counting.flatMap(({ settings, source }) =>
        settings.permissions[list].map((rule) => ({ ...rule, source })),
      ),
      sameRule,
    );
  return {
    permissions: {
      allow: rules("allow"),
      ask: rules("ask"),
      deny: rules("deny"),
      ...values.permissions,
      additionalDirectories: withoutRepeats(
        collect(counting, (settings) => settings.permissions.additionalDirectories).map(
          ({ value, source }) => ({ directory: value, source }),
        ),
        ({ directory, source }) => JSON.stringify([directory, source.anchor]),
      ),
      invalidRules: counting.flatMap(({ settings, source }) =>
        settings.permissions.invalidRules.map((rule) => ({ ...rule, source })),
      ),
    },
    hooks: withoutRepeats(
      collect(counting, (settings) => settings.hooks).map(({ value, source }) => ({ hook: value, source })),
      ({ hook }) => JSON.stringify(hook),
    ),
    env: values.env,
    plain: values.plain,
    extra: values.extra,
    sources: values.sources,
    heldBack: [...limited.heldBack, ...heldBack],
    brokenRestrictions: collect(counting, (settings) => settings.brokenRestrictions).map(
      ({ value, source }) => ({ text: value, source }),
    ),
  };
}

function inOrder(layers: readonly SettingsLayer[]): readonly SettingsLayer[] {
  return settingsScopes.flatMap((scope) => layers.filter((layer) => layer.source.scope === scope));
}

function limitLayers(layers: readonly SettingsLayer[], trusted: boolean) {
  const heldBack: HeldBack[] = [];
  let modeSoFar: PermissionMode = "default";
  const limited = layers.map((layer) => {
    const isUnsafe = layer.isUnsafe === true;
    if (!isUnsafe && !isFromRepository(layer.source.scope)) {
      modeSoFar = layer.settings.permissions.defaultMode ?? modeSoFar;
      return layer;
    }
    const result = limitRepositoryLayer(layer, { trusted: trusted && !isUnsafe, modeSoFar });
    heldBack.push(...result.heldBack);
    modeSoFar = result.settings.permissions.defaultMode ?? modeSoFar;
    return { source: layer.source, settings: result.settings };
  });
  return { layers: limited, heldBack };
}

/** An organisation can say that only its own allow rules, or only its own hooks, count; restrictions of others stay. */
function obeyManagedOnly(layers: readonly SettingsLayer[]) {
  const managed = layers.filter((layer) => layer.source.scope === "managed");
  const rulesOnly = managed.some((layer) => layer.settings.plain.allowManagedPermissionRulesOnly === true);
  const hooksOnly = managed.some((layer) => layer.settings.plain.allowManagedHooksOnly === true);
  const domainsOnly = managed.some(
    ({ settings }) => networkOf(settings)?.["allowManagedDomainsOnly"] === true,
  );
  const heldBack: HeldBack[] = [];
  const reason = "managed-settings-forbid";
  const counting = layers.map((given) => {
    if (given.source.scope === "managed") return given;
    const domains = domainsOnly ? networkOf(given.settings)?.["allowedDomains"] : undefined;
    const layer = domains === undefined ? given : withoutDomains(given);
    const { settings, source } = layer;
    if (domains !== undefined)
      heldBack.push({ key: "sandbox.network.allowedDomains", value: domains, reason, source });
    if (!(rulesOnly || hooksOnly)) return layer;
    if (hooksOnly)
      for (const hook of settings.hooks)
        heldBack.push({ key: `hooks.${hook.event}`, value: hook.handler, reason, source });
    if (!rulesOnly) return { source, settings: { ...settings, hooks: [] } };
    for (const rule of settings.permissions.allow)
      heldBack.push({ key: "permissions.allow", detail: rule.text, value: rule.text, reason, source });
    const permissions = { ...settings.permissions, allow: [] };
    return { source, settings: { ...settings, permissions, hooks: hooksOnly ? [] : settings.hooks } };
  });
  return { counting, heldBack };
}

function networkOf({ plain }: SettingsLayer["settings"]): JsonRecord | undefined {
  const network = plain.sandbox?.["network"];
  return isRecord(network) ? network : undefined;
}

function withoutDomains(layer: SettingsLayer): SettingsLayer {
  const { plain } = layer.settings;
  const { allowedDomains: _held, ...network } = networkOf(layer.settings) ?? {};
  return {
    ...layer,
    settings: { ...layer.settings, plain: { ...plain, sandbox: { ...plain.sandbox, network } } },
  };
}

function mergeLayerValues(layers: readonly SettingsLayer[]) {
  const sources = new Map<string, SettingsSource>();
  const env = new Map<string, string>();
  const plain = new Map<string, unknown>();
  const extra = new Map<string, unknown>();
  const switches = new Map<string, unknown>();
  let defaultMode: PermissionMode | undefined;
  for (const { settings, source } of layers) {
    const lay = (target: Map<string, unknown>, key: string, value: unknown, name = key) => {
      const overOthers = source.scope === "managed" && sources.get(name)?.scope !== "managed";
      const whole = takenWhole.has(key) || (overOthers && policyLists.has(key));
      const merge = ownMerges.get(key) ?? mergeValues;
      const merged = whole || !target.has(key) ? value : merge(target.get(key), value);
      target.set(key, merged);
      for (const each of settingNames(name, value))
        if (counts(merged, value, each.slice(name.length + 1))) sources.set(each, source);
    };
    for (const [name, value] of settings.env) {
      env.set(name, value);
      sources.set(`env.${name}`, source);
    }
    for (const [key, value] of Object.entries(settings.plain)) lay(plain, key, value);
    for (const [key, value] of settings.extra) lay(extra, key, value);
    for (const [key, value] of Object.entries(settings.permissions.switches))
      lay(switches, key, value, `permissions.${key}`);
    if (settings.permissions.defaultMode === undefined) continue;
    defaultMode = settings.permissions.defaultMode;
    sources.set("permissions.defaultMode", source);
  }
  return {
    env,
    extra,
    sources,
    // Values of one key keep that key's type when they are merged.
    plain: Object.fromEntries(plain) as PlainSettings,
    permissions: {
      switches: Object.fromEntries(switches) as PermissionSwitches,
      defaultMode,
    },
  };
}

/** Whether the part at a dotted path is this layer's own: a ceiling of an earlier layer that is lower stays. */
function counts(merged: unknown, own: unknown, path: string): boolean {
  const part = (value: unknown): unknown =>
    path
      .split(".")
      .reduce<unknown>((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : at), value);
  return typeof part(own) !== "number" || part(merged) === part(own);
}

/** A chain of fallbacks is one thought; two of them put together would be a third. */
const takenWhole: ReadonlySet<string> = new Set(["fallbackModel"]);

/** Lists of what is permitted: an organisation's list is not made longer by any other. */
const policyLists: ReadonlySet<string> = new Set([
  "availableModels",
  "allowedMcpServers",
  "allowedHttpHookUrls",
  "httpHookAllowedEnvVars",
]);

/** Rules that start at their file's own directory are the same only in the same directory. */
function sameRule({ rule, source }: WrittenRule & { readonly source: SettingsSource }): string {
  const isAnchored = rule.specifier.type === "path" && rule.specifier.anchor === "settings";
  return isAnchored ? JSON.stringify([formatRule(rule), source.anchor]) : formatRule(rule);
}

function collect<T>(
  layers: readonly SettingsLayer[],
  take: (settings: SettingsLayer["settings"]) => readonly T[],
) {
  return layers.flatMap(({ settings, source }) => take(settings).map((value) => ({ value, source })));
}

/** Checks guard results, so those of a later layer are added and take none away. */
function mergeChecks(low: unknown, high: unknown): unknown {
  if (!isRecord(low) || !isRecord(high)) return high;
  const of = (layer: JsonRecord, type: string): readonly unknown[] =>
    Object.hasOwn(layer, type) && layer[type] !== null ? [layer[type]].flat() : [];
  const types = [...new Set([...Object.keys(low), ...Object.keys(high)])];
  return Object.fromEntries(types.map((type) => [type, [...of(low, type), ...of(high, type)]]));
}

/** Lays one value over another; of two ceilings the smaller one stays, whichever layer it is from. */
function withCeilings(...ceilings: readonly string[]) {
  return (low: unknown, high: unknown): unknown => {
    if (!isRecord(low) || !isRecord(high)) return high;
    return mergeRecords(low, high, (one, other, key) =>
      ceilings.includes(key) ? mergeCeilings(one, other) : mergeValues(one, other),
    );
  };
}

export const mergeLimits = withCeilings("agent", "tree", "depth", "nested");

/** Of two numbers the smaller one stays. */
function mergeCeilings(low: unknown, high: unknown): unknown {
  if (typeof low === "number" && typeof high === "number") return Math.min(low, high);
  return isRecord(low) && isRecord(high) ? mergeRecords(low, high, mergeCeilings) : high;
}

/** Keys whose values are not laid over each other as others are. */
const ownMerges: ReadonlyMap<string, (low: unknown, high: unknown) => unknown> = new Map([
  ["limits", mergeLimits],
  ["quota", mergeCeilings],
  ["quotes", mergeCeilings],
  ["verify", mergeChecks],
  ["workflows", withCeilings("maxBudgetUsd", "maxTokens", "maxOutputTokens")],
]);

/** Lays one JSON value over another: objects key by key, lists one after the other without repeats, else the higher. */
function mergeValues(low: unknown, high: unknown): unknown {
  if (Array.isArray(low) && Array.isArray(high))
    return withoutRepeats([...low, ...high], (value) => JSON.stringify(value));
  return isRecord(low) && isRecord(high) ? mergeRecords(low, high, mergeValues) : high;
}

function mergeRecords(
  low: JsonRecord,
  high: JsonRecord,
  merge: (low: unknown, high: unknown, key: string) => unknown,
): JsonRecord {
  const keys = new Set([...Object.keys(low), ...Object.keys(high)]);
  const entries = [...keys].map((key): [string, unknown] => {
    if (!Object.hasOwn(high, key)) return [key, low[key]];
    return [key, Object.hasOwn(low, key) ? merge(low[key], high[key], key) : high[key]];
  });
  return Object.fromEntries(entries);
}

/** Keeps the first of those that are the same. */
function withoutRepeats<T>(values: readonly T[], identity: (value: T) => string): T[] {
  const seen = new Set<string>();
  return values.filter((value) => {
    const key = identity(value);
    return seen.has(key) ? false : seen.add(key) !== undefined;
  });
}

/** The dotted names of all that is set in a value: of an object its parts, of anything else the name itself. */
function settingNames(name: string, value: unknown): string[] {
  if (!isRecord(value) || Object.keys(value).length === 0) return [name];
  return Object.entries(value).flatMap(([key, part]) => settingNames(`${name}.${key}`, part));
}

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
  const sieve = createTrustFilter(options.trusted ? "never-from-a-repository" : untrusted, source);
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

interface TrustFilter {
  readonly heldBack: readonly HeldBack[];
  /** The values that count; each of the others is noted under its name. */
  readonly keep: <T>(values: readonly T[], counts: (value: T) => boolean, name: (value: T) => Name) => T[];
}

function createTrustFilter(reason: HeldBack["reason"], source: HeldBack["source"]): TrustFilter {
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
  sieve: TrustFilter,
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
  sieve: TrustFilter,
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
  RIPGREP_CONFIG_PATH CURL_HOME WGETRC NETRC OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES SSL_CERT_FILE SSL_CERT_DIR
  MAKE CFLAGS CPPFLAGS CXXFLAGS LDFLAGS AUTOCONF AUTOMAKE ACLOCAL ACLOCAL_PATH M4PATH BISON_PKGDATADIR PKG_CONFIG PKG_CONFIG_PATH
  CMAKE_TOOLCHAIN_FILE CMAKE_PREFIX_PATH CMAKE_PROJECT_TOP_LEVEL_INCLUDES CLASSPATH MAVEN_ARGS
  M2_HOME ANT_ARGS ANT_HOME SCALA_HOME KOTLIN_HOME GROOVY_HOME DOTNET_STARTUP_HOOKS DOTNET_ADDITIONAL_DEPS DOTNET_SHARED_STORE PSMODULEPATH
  PYTEST_ADDOPTS PYTEST_PLUGINS TOX_OVERRIDE PIPENV_PIPFILE CONDARC CONDA_EXE IPYTHONDIR JUPYTER_PATH JUPYTER_CONFIG_DIR
  COREPACK_HOME COREPACK_NPM_REGISTRY TSX_TSCONFIG_PATH ESBUILD_BINARY_PATH ELECTRON_RUN_AS_NODE ELECTRON_OVERRIDE_DIST_PATH
  PLAYWRIGHT_BROWSERS_PATH PUPPETEER_EXECUTABLE_PATH CHROME_PATH NVM_DIR VOLTA_HOME COMPOSER_HOME
  JULIA_LOAD_PATH JULIA_DEPOT_PATH R_HOME R_PROFILE R_PROFILE_USER R_ENVIRON R_ENVIRON_USER R_LIBS R_LIBS_USER R_LIBS_SITE
  ERL_LIBS ERL_AFLAGS ERL_ZFLAGS MIX_HOME MIX_ARCHIVES OCAMLPATH CAML_LD_LIBRARY_PATH OPAMROOT SWIFT_EXEC DEVELOPER_DIR TCLLIBPATH
  VIMINIT EXINIT VIMRUNTIME EMACSLOADPATH GNUPGHOME SVN_SSH SVN_EDITOR HGRCPATH HGEDITOR HGMERGE PSQLRC PSQL_EDITOR PSQL_PAGER
  PGSERVICEFILE PGSYSCONFDIR PGPASSFILE MYSQL_HOME KRB5_CONFIG SASL_PATH TEXINPUTS KUBECONFIG HELM_PLUGINS TF_CLI_CONFIG_FILE
  TF_PLUGIN_CACHE_DIR DIRENV_CONFIG NIX_PATH NIX_CONFIG GUIX_PACKAGE_PATH LEFTHOOK_BIN PARALLEL
  QT_PLUGIN_PATH QML_IMPORT_PATH QML2_IMPORT_PATH GTK_MODULES GTK_PATH GIO_EXTRA_MODULES GIO_MODULE_DIR GST_PLUGIN_PATH
  LIBGL_DRIVERS_PATH VK_ICD_FILENAMES VK_LAYER_PATH
  CLAUDE_CONFIG_DIR CLAUDE_CODE_TMPDIR CLAUDE_CODE_PROJECT_DIR_NAME CLAUDE_CODE_SUBPROCESS_ENV_SCRUB TMPDIR TEMP TMP`.split(
    /\s+/,
  ),
);

const prefixes = [
  "LD_",
  "DYLD_",
  "GIT_",
  "BASH_FUNC_",
  "NPM_CONFIG_",
  "COR_",
  "CORECLR_",
  "ANSIBLE_",
  "TF_CLI_ARGS",
  "MISE_",
  "ASDF_",
  "TEXMF",
  "VAGRANT_",
] as const;

const permittedGitVariables = [
  /^GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)$/,
  /^GIT_TERMINAL_PROMPT$/,
] as const;
