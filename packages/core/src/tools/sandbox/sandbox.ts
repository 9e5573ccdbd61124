import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { PolicyRule } from "@retinue/gate/decide.ts";
import type { SandboxRights } from "@retinue/gate/permission-policy.ts";
import { sandboxLimits } from "./sandbox-limits.ts";
import type { SandboxRuntime } from "./sandbox-runtime.ts";

/** A program with its arguments, as a process is started. */
export interface Invocation {
  readonly file: string;
  readonly arguments: readonly string[];
  /** What the program reads from descriptor 4. */
  readonly sideInput?: Uint8Array;
}

export interface SandboxOptions {
  readonly signal: AbortSignal;
  /** The command as the model wrote it, for those that settings take out of the sandbox. */
  readonly command: string;
  /** Folders that may be written to; the first is the project. */
  readonly workingDirectories: readonly string[];
  /** The command may run because it only reads, so that it may write nothing but temporary files. */
  readonly readOnly?: boolean;
}

export type SandboxWrap =
  /** Start this instead, and call `ended` once nothing of it runs any more. */
  | { readonly type: "wrapped"; readonly invocation: Invocation; readonly ended: () => void }
  /** A setting says that this command runs without protection. */
  | { readonly type: "unprotected"; readonly note?: string }
  /** There is no protection, and nothing says that there need not be. */
  | { readonly type: "refused"; readonly reason: string };

/** Keeps what a command does to the world inside limits that the operating system enforces. */
export interface Sandbox {
  wrap(invocation: Invocation, options: SandboxOptions): Promise<SandboxWrap>;
}

/** One text that a shell reads as exactly this invocation. */
function quoteInvocation({ file, arguments: words }: Invocation): string {
  return [file, ...words].map((word) => `'${word.replaceAll("'", `'"'"'`)}'`).join(" ");
}

interface SessionSandboxOptions {
  readonly runtime: SandboxRuntime;
  readonly settings: SandboxSettings;
  readonly home: string;
  readonly deny: readonly PolicyRule[];
}

/** The sandbox of one session; undefined where settings do not ask for one. */
export function createSandbox(options: SessionSandboxOptions): Sandbox | undefined {
  const { runtime, settings } = options;
  if (!settings.enabled) return undefined;
  return {
    async wrap(invocation, { signal, command, workingDirectories, readOnly = false }): Promise<SandboxWrap> {
      if (isExcluded(command, settings.excludedCommands)) return { type: "unprotected" };
      const start = await runtime.start(settings);
      if (start.type === "unavailable") {
        const { why, advice } = start;
        if (settings.mayRunUnprotected) {
          return { type: "unprotected", note: `The command ran without a sandbox: ${why}.` };
        }
        return {
          type: "refused",
          reason: `Settings want commands in a sandbox, and there is none: ${why}. Nothing was run. ${advice} To run without protection where there is no sandbox, set "failIfUnavailable": false under "sandbox".`,
        };
      }
      const { manager, temporaryDirectory } = start;
      const limits = sandboxLimits({ ...options, workingDirectories, temporaryDirectory });
      const filesystem = readOnly ? { ...limits, allowWrite: [temporaryDirectory] } : limits;
      const temporary = `TMPDIR=${quoteInvocation({ file: temporaryDirectory, arguments: [] })}`;
      const variables = readOnly ? `${temporary} GIT_OPTIONAL_LOCKS=0` : temporary;
      const text = `${variables} exec ${quoteInvocation(invocation)}`;
      try {
        const { argv } = await manager.wrapWithSandboxArgv(text, invocation.file, { filesystem }, signal);
        const [file = "", ...words] = argv;
        return {
          type: "wrapped",
          invocation: { file, arguments: words },
          ended: () => manager.cleanupAfterCommand(),
        };
      } catch (error) {
        const reason = `The sandbox could not take the command, so it did not run: ${error instanceof Error ? error.message : String(error)}`;
        return { type: "refused", reason };
      }
    },
  };
}

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
 * said in words, and counts only where none of them could run unprotected.
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
