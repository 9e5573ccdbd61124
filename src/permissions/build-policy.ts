import { posix } from "node:path";
import type { PermissionMode, PermissionPolicy, PolicyRule, SandboxRights } from "./permission-policy.ts";

/** Switches of the `permissions` settings that restrict every call. */
export interface RestrictingSwitches {
  readonly blockReadsOutsideWorkingDirectories?: boolean;
  readonly blockWritesOutsideWorkingDirectories?: boolean;
  readonly blockReadsExemptPaths?: readonly string[];
  readonly denyInsteadOfPrompting?: boolean;
}

/** What settings, options and the machine say about rights, before it is known which mode applies. */
export interface PolicyFacts {
  readonly rules: Readonly<Record<"allow" | "ask" | "deny", readonly PolicyRule[]>>;
  /** Folders with the outputs of this session, which its agents may always read. */
  readonly outputRules?: readonly PolicyRule[];
  readonly workingDirectories: readonly string[];
  readonly directory: string;
  readonly home: string;
  readonly platform: string;
  readonly trusted: boolean;
  readonly sandbox?: SandboxRights;
  readonly switches?: RestrictingSwitches;
}

/** The policy of a session's main agent: for its run, its plan and every command that explains decisions. Pure. */
export function buildPolicy(facts: PolicyFacts, mode: PermissionMode): PermissionPolicy {
  const { rules, outputRules = [], switches = {} } = facts;
  const confinement = {
    ...(switches.blockReadsOutsideWorkingDirectories === true
      ? { readsExcept: readableOutside(facts, switches.blockReadsExemptPaths ?? []) }
      : {}),
    ...(switches.blockWritesOutsideWorkingDirectories === true ? { writes: true } : {}),
  };
  return {
    mode,
    allow: [...rules.allow, ...outputRules],
    ask: rules.ask,
    deny: rules.deny,
    workingDirectories: facts.workingDirectories,
    home: facts.home,
    platform: facts.platform,
    trusted: facts.trusted,
    ...(facts.sandbox === undefined ? {} : { sandbox: facts.sandbox }),
    ...(Object.keys(confinement).length === 0 ? {} : { confinement }),
    ...(switches.denyInsteadOfPrompting === true ? { deniesInsteadOfAsking: true } : {}),
  };
}

function readableOutside(
  { outputRules = [], directory, home }: PolicyFacts,
  exempt: readonly string[],
): readonly string[] {
  const written = exempt.map((path) => {
    const folder = path.replace(/\/\*\*$/, "");
    return folder === "~" || folder.startsWith("~/")
      ? posix.join(home, folder.slice(1))
      : posix.resolve(directory, folder);
  });
  return [...written, ...outputRules.flatMap(({ anchor, otherAnchors = [] }) => [anchor, ...otherAnchors])];
}
