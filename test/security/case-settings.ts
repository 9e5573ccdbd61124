import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readSettings } from "@retinue/config/settings/settings.ts";
import {
  type MergedSettings,
  mergeSettings,
  type SettingsLayer,
} from "@retinue/config/settings/settings-layer.ts";
import { createTrustStore } from "@retinue/config/settings/trust-store.ts";
import { type Fields, isFields, type Roots, type ScopeRules, type SecurityCase } from "./security-case.ts";

/** One settings file of a case. */
export interface CaseFile {
  readonly scope: ScopeRules["scope"];
  readonly settings: Fields;
  /** Where rules such as `/src/**` start, if not where the file is. */
  readonly root?: string;
}

/** Every settings file that a case says there is. */
export function caseFiles({ rules, scopes = [], context = {} }: SecurityCase): readonly CaseFile[] {
  const sandbox = context["sandbox"];
  return [
    { scope: "user", settings: { permissions: rules } },
    ...scopes.map(({ scope, permissions, root }) => ({
      scope,
      settings: { permissions },
      root,
    })),
    ...contextFiles.flatMap(([key, scope]) => {
      const settings = context[key];
      return isFields(settings) ? [{ scope, settings: asSettings(settings) }] : [];
    }),
    ...(isFields(sandbox)
      ? [{ scope: "user" as const, settings: { sandbox: sandboxSettings(sandbox) } }]
      : []),
  ];
}

const contextFiles = [
  ["managed", "managed"],
  ["userSettings", "user"],
  ["projectSettings", "project"],
  ["localSettings", "local"],
] as const;

/** The settings of a case merged as at a start. */
export async function mergeCaseSettings(testCase: SecurityCase, roots: Roots): Promise<MergedSettings> {
  const layers = caseFiles(testCase).map((file) => layerOf(file, roots));
  return mergeSettings(layers, { trusted: await isTrusted(testCase, roots) });
}

export function layerOf({ scope, settings, root }: CaseFile, roots: Roots): SettingsLayer {
  const anchors = {
    user: join(roots.H, ".claude"),
    managed: join(roots.W, "managed"),
    project: roots.P,
    local: roots.P,
  };
  return {
    source: { scope, anchor: root ?? anchors[scope], file: `${scope} settings` },
    settings: readSettings(settings, { scope }).settings,
  };
}

/** Settings as a file has them: the fields of `permissions`, which cases also write alone, are put where they belong. */
export function asSettings(value: Fields): Fields {
  const entries = Object.entries(value);
  const alone = entries.filter(([key]) => permissionFields.has(key));
  if (alone.length === 0) return value;
  const rest = entries.filter(([key]) => !permissionFields.has(key) && key !== "permissions");
  return {
    ...Object.fromEntries(rest),
    permissions: { ...fieldsOf(value["permissions"]), ...Object.fromEntries(alone) },
  };
}

const permissionFields: ReadonlySet<string> = new Set([
  "allow",
  "ask",
  "deny",
  "defaultMode",
  "additionalDirectories",
  "disableBypassPermissionsMode",
  "blockReadsOutsideWorkingDirectories",
  "blockWritesOutsideWorkingDirectories",
  "blockReadsExemptPaths",
  "workingDirectoriesAsGiven",
  "denyInsteadOfPrompting",
]);

/** The `sandbox` setting, from the short names of cases; whether it can be had is no setting. */
export function sandboxSettings(value: Fields): Fields {
  const { autoAllow } = value;
  const rest = Object.fromEntries(Object.entries(value).filter(([key]) => !noSettings.has(key)));
  const pick = (names: readonly string[]): Fields =>
    Object.fromEntries(Object.entries(rest).filter(([key]) => names.includes(key)));
  const [files, hosts] = [pick(fileLists), pick(hostLists)];
  const own = Object.fromEntries(
    Object.entries(rest).filter(([key]) => !fileLists.includes(key) && !hostLists.includes(key)),
  );
  return {
    ...own,
    ...(autoAllow === undefined ? {} : { autoAllowBashIfSandboxed: autoAllow }),
    filesystem: { ...fieldsOf(rest["filesystem"]), ...files },
    network: { ...fieldsOf(rest["network"]), ...hosts },
  };
}

const noSettings: ReadonlySet<string> = new Set(
  "autoAllow available supported installed works unavailable".split(" "),
);
const fileLists = ["allowWrite", "denyWrite", "denyRead", "allowRead"];
const hostLists = ["allowedDomains", "deniedDomains"];

/** Whether the folder of a case is trusted: by the person's own record where the case shows what is in it. */
export async function isTrusted(testCase: SecurityCase, roots: Roots): Promise<boolean> {
  const { context = {}, cwd = roots.P } = testCase;
  if (context["trustedRoots"] === undefined) return testCase.trusted ?? true;
  await writeTrustedRoots(texts(context["trustedRoots"]), roots);
  return (await trustStore(roots).isTrusted(cwd)).trusted;
}

export async function writeTrustedRoots(folders: readonly string[], { H }: Roots): Promise<void> {
  const projects = Object.fromEntries(folders.map((folder) => [folder, { hasTrustDialogAccepted: true }]));
  await writeFile(join(H, ".claude.json"), JSON.stringify({ projects }));
}

export function trustStore({ H }: Roots) {
  return createTrustStore({ stateFile: join(H, ".claude.json"), home: H });
}

export function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}
