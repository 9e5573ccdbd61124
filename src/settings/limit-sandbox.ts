import { isRecord, type JsonRecord } from "../foundation/json-record.ts";

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
