import type { Issue } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, type JsonRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { type JsonSchema, orNull } from "@retinue/base/foundation/json-schema.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { wrongValue } from "./plain-settings.ts";
import { flag, textList } from "./read-environment.ts";

export interface HeldSandboxKey {
  readonly name: string;
  readonly value: unknown;
}

/** The sandbox settings of a repository that may count, and the dotted keys of those that may not. */
export function limitSandbox(
  sandbox: JsonRecord,
  trusted: boolean,
): { readonly sandbox: JsonRecord; readonly held: readonly HeldSandboxKey[] } {
  const held: HeldSandboxKey[] = [];
  const keep = (record: JsonRecord, prefix: string, depth: number): JsonRecord =>
    Object.fromEntries(
      Object.entries(record).flatMap(([key, value]): [string, unknown][] => {
        const name = `${prefix}${key}`;
        if (depth < 2 && isRecord(value) && !forbidden.has(name))
          return [[key, keep(value, `${name}.`, depth + 1)]];
        if (mayCount(name, value, trusted)) return [[key, value]];
        held.push({ name, value });
        return [];
      }),
    );
  return { sandbox: keep(sandbox, "", 1), held };
}

function mayCount(name: string, value: unknown, trusted: boolean): boolean {
  if (restricts(name, value)) return true;
  return trusted && !forbidden.has(name) && !switches.has(name) && !/(?:Path|Command|Binary)$/.test(name);
}

/** True makes the sandbox stricter; any other value could only make it weaker. */
const switches: ReadonlySet<string> = new Set([
  "enabled",
  "failIfUnavailable",
  "isolateReadOnlyCommands",
  "network.allowManagedDomainsOnly",
]);

const restrictingLists: ReadonlySet<string> = new Set([
  "filesystem.denyRead",
  "filesystem.denyWrite",
  "network.deniedDomains",
]);

function restricts(name: string, value: unknown): boolean {
  if (name === "allowUnsandboxedCommands") return value === false;
  return switches.has(name) ? value === true : restrictingLists.has(name);
}

/** Helper programs, ways around the sandbox, and places its traffic could be sent to. */
const forbidden: ReadonlySet<string> = new Set([
  "ripgrep",
  "excludedCommands",
  "allowUnsandboxedCommands",
  "autoAllowBashIfSandboxed",
  "enableWeakerNestedSandbox",
  "enableWeakerNetworkIsolation",
  "ignoreViolations",
  "network.allowUnixSockets",
  "network.allowAllUnixSockets",
  "network.allowLocalBinding",
  "network.httpProxyPort",
  "network.socksProxyPort",
]);

export interface SandboxReading {
  /** The value as it is meant, where it was looked into. */
  readonly read: { readonly sandbox?: JsonRecord };
  readonly issues: readonly Issue[];
  /** What should restrict and cannot be understood. */
  readonly broken: readonly string[];
}

/** Reads what is inside `sandbox`: a switch that should protect and is slightly wrong is an error, never dropped. */
export function readSandbox(value: unknown): SandboxReading {
  if (!isRecord(value)) return { read: {}, issues: [], broken: [] };
  const issues: Issue[] = [];
  const sandbox = readPart(value, [], issues);
  return { read: { sandbox }, issues, broken: issues.map(({ path }) => path.join(".")) };
}

const parts: ReadonlySet<string> = new Set(["filesystem", "network"]);

function readPart(record: JsonRecord, above: readonly string[], issues: Issue[]): JsonRecord {
  const entries = Object.entries(record).map(([key, value]): [string, unknown] => {
    const names = [...above, key];
    const path = ["sandbox", ...names];
    const name = names.join(".");
    const wrong = (expected: string): unknown => {
      issues.push({ ...wrongValue(key, expected, value, path), severity: "error" });
      return undefined;
    };
    if (value === null) return [key, value];
    if (parts.has(name)) return [key, isRecord(value) ? readPart(value, names, issues) : wrong("an object")];
    if (switches.has(name) || name === "allowUnsandboxedCommands")
      return [key, flag.read(value) ?? wrong(flag.expected)];
    if (restrictingLists.has(name)) return [key, textList.read(value) ?? wrong(textList.expected)];
    const meant = nearestRestriction(key, above);
    if (meant !== undefined) issues.push(misspelt(key, meant, path));
    return [key, value];
  });
  return Object.fromEntries(entries);
}

/** What `readSandbox` takes. Keys that only open something are passed on as they are. */
export function sandboxSchema(): JsonSchema {
  const known = [
    ...parts,
    ...switches,
    "allowUnsandboxedCommands",
    ...restrictingLists,
    ...otherKeys,
    ...forbidden,
  ];
  const propertiesBelow = (prefix: string): JsonSchema => {
    const names = known.filter((name) => name.startsWith(prefix) && !name.slice(prefix.length).includes("."));
    return Object.fromEntries(names.map((name) => [name.slice(prefix.length), orNull(schemaOf(name))]));
  };
  const schemaOf = (name: string): JsonSchema => {
    if (parts.has(name)) return { type: "object", properties: propertiesBelow(`${name}.`) };
    if (switches.has(name) || name === "allowUnsandboxedCommands") return flag.schema;
    return restrictingLists.has(name) ? textList.schema : {};
  };
  return { type: "object", properties: propertiesBelow("") };
}

/** The key that restricts, where this is no key and nearly that one. */
function nearestRestriction(key: string, above: readonly string[]): string | undefined {
  const prefix = above.length === 0 ? "" : `${above.join(".")}.`;
  const known = [...parts, ...switches, ...restrictingLists, ...forbidden, ...otherKeys];
  const here = known
    .filter((name) => name.startsWith(prefix) && !name.slice(prefix.length).includes("."))
    .map((name) => name.slice(prefix.length));
  if (here.includes(key)) return undefined;
  const meant = nearestName(key, here, 2);
  const name = `${prefix}${meant}`;
  const restrictsThere = parts.has(name) || switches.has(name) || restrictingLists.has(name);
  return meant !== undefined && (restrictsThere || name === "allowUnsandboxedCommands") ? meant : undefined;
}

/** Keys that only open something. */
const otherKeys = ["filesystem.allowRead", "filesystem.allowWrite", "network.allowedDomains"] as const;

function misspelt(key: string, meant: string, path: readonly string[]): Issue {
  return {
    severity: "error",
    code: "misplaced-restriction",
    message: `Unknown sandbox setting ${quote(key)}; what it should restrict would stay allowed.`,
    advice: `Did you mean "${meant}"?`,
    path,
  };
}
