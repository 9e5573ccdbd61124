import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { SandboxRights } from "@retinue/gate/permission-policy.ts";

/** The `sandbox` settings that this product knows, with their defaults. */
export interface SandboxSettings {
  readonly enabled: boolean;
  /** Whether commands that may run because they only read are kept from writing and from the network, where that can be had. */
  readonly isolatesReadOnlyCommands: boolean;
  /** Whether a command may run without protection where there can be none. Only an explicit word allows it. */
  readonly mayRunUnprotected: boolean;
  /** Whether a session does not begin where there can be none. */
  readonly endsStart: boolean;
  readonly excludedCommands: readonly string[];
  readonly weakerNestedSandbox: boolean;
  readonly filesystem: {
    readonly allowWrite: readonly string[];
    readonly denyWrite: readonly string[];
    readonly denyRead: readonly string[];
    readonly allowRead: readonly string[];
  };
  readonly network: {
    readonly allowedDomains: readonly string[];
    readonly deniedDomains: readonly string[];
    readonly allowUnixSockets: readonly string[];
    readonly allowAllUnixSockets: boolean;
    readonly allowLocalBinding: boolean;
  };
}

/** Tolerant: a value of another kind counts as not written, which is always the stricter reading. */
export function readSandboxSettings(value: JsonRecord | undefined): SandboxSettings {
  const settings = value ?? {};
  const filesystem = recordOf(settings, "filesystem");
  const network = recordOf(settings, "network");
  const unavailable = own(settings, "failIfUnavailable");
  return {
    enabled: own(settings, "enabled") === true,
    isolatesReadOnlyCommands: own(settings, "isolateReadOnlyCommands") !== false,
    mayRunUnprotected:
      unavailable === false || (own(settings, "allowUnsandboxedCommands") === true && unavailable !== true),
    endsStart: unavailable === true,
    excludedCommands: textsOf(settings, "excludedCommands"),
    weakerNestedSandbox: own(settings, "enableWeakerNestedSandbox") === true,
    filesystem: {
      allowWrite: textsOf(filesystem, "allowWrite"),
      denyWrite: textsOf(filesystem, "denyWrite"),
      denyRead: textsOf(filesystem, "denyRead"),
      allowRead: textsOf(filesystem, "allowRead"),
    },
    network: {
      allowedDomains: textsOf(network, "allowedDomains"),
      deniedDomains: textsOf(network, "deniedDomains"),
      allowUnixSockets: textsOf(network, "allowUnixSockets"),
      allowAllUnixSockets: own(network, "allowAllUnixSockets") === true,
      allowLocalBinding: own(network, "allowLocalBinding") === true,
    },
  };
}

/**
 * What the sandbox means for permission decisions; undefined where there is none. That its commands need no rule must be
 * explicit, and counts only where none of them could run unprotected.
 */
export function sandboxRights(value: JsonRecord | undefined): SandboxRights | undefined {
  if (own(value ?? {}, "enabled") !== true) return undefined;
  const settings = readSandboxSettings(value);
  return {
    autoAllow: own(value ?? {}, "autoAllowBashIfSandboxed") === true && !settings.mayRunUnprotected,
    excludedCommands: settings.excludedCommands,
    allowUnsandboxed: false,
  };
}

/** `docker *` takes commands out of the sandbox that begin so and are nothing but one plain command. */
export function isExcluded(command: string, excludedCommands: readonly string[]): boolean {
  const text = command.trim();
  if (!/^[\w./:=@,+%-]+(?: +[\w./:=@,+%-]+)*$/.test(text)) return false;
  return excludedCommands.some((entry) => {
    const beginning = entry.trim().replace(/(?: |:)\*$/, "");
    if (beginning === "" || beginning.includes("*")) return false;
    return text === beginning || (beginning !== entry.trim() && text.startsWith(`${beginning} `));
  });
}

function own(record: JsonRecord, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

function recordOf(record: JsonRecord, key: string): JsonRecord {
  const value = own(record, key);
  return value !== undefined && isRecord(value) ? value : {};
}

function textsOf(record: JsonRecord, key: string): readonly string[] {
  const value = own(record, key);
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "string" && entry !== "") : [];
}
