import { posix } from "node:path";
import {
  type BackgroundRight,
  backgroundRights,
  type PermissionMode,
  type PermissionPolicy,
  type PolicyRule,
  type SandboxRights,
  type ToolScopes,
} from "./permission-policy.ts";
import { protectsName } from "./protection-of.ts";

/** Switches of the `permissions` settings that restrict every call. */
interface RestrictingSwitches {
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
  /** Files and folders that hold what steers this product, wherever they are. */
  readonly steering?: readonly string[];
  readonly trusted: boolean;
  readonly walled?: boolean;
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
    ...steeringOf(facts),
    ...(facts.walled === true ? { walled: true } : {}),
    sandbox: facts.sandbox,
    ...(Object.keys(confinement).length === 0 ? {} : { confinement }),
    ...(switches.denyInsteadOfPrompting === true ? { deniesInsteadOfAsking: true } : {}),
  };
}

/** Those that are not protected by their names anyway. */
function steeringOf({ steering = [], platform }: PolicyFacts): Pick<PermissionPolicy, "steering"> {
  const unnamed = steering.filter((path) => protectsName(path, { platform }) === undefined);
  return unnamed.length === 0 ? {} : { steering: [...new Set(unnamed)] };
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

/** What a child is started with, as far as it concerns rights. */
export interface RequestedRights {
  /** The mode of the call, and who made the call. */
  readonly call?: { readonly mode: PermissionMode; readonly by: "program" | "model" };
  readonly definition?: {
    readonly mode?: PermissionMode | undefined;
    readonly scope: string;
  };
  /** Whether a file of the project may ask for more than its parent has; only in a folder that is trusted. */
  readonly projectMayWiden?: boolean;
  /** The tools of the child, how far each goes, and where its memory is. */
  readonly tools?: ToolScopes;
  /** It runs in the background: no caller waits for it. */
  readonly background?: boolean;
  /** What it has there all the same. */
  readonly backgroundKeeps?: readonly BackgroundRight[] | undefined;
}

/** The rights of a child: its parent's rules, a mode that is never wider than may be, and no tools beyond its own. */
export function childPolicy(parent: PermissionPolicy, requestedRights: RequestedRights): PermissionPolicy {
  return {
    ...parent,
    mode: childMode(parent.mode, requestedRights),
    // A program that names the mode acts for the person; files and models do not.
    outerModes: [
      ...(parent.outerModes ?? []),
      ...(requestedRights.call?.by === "program" ? [] : [parent.mode]),
    ],
    ...(requestedRights.tools === undefined
      ? {}
      : { toolScopes: [...(parent.toolScopes ?? []), requestedRights.tools] }),
    ...joinBackground(parent, requestedRights),
  };
}

/** Two places together: what one of them does not have in the background, neither has. */
export function joinBackground(
  ...places: readonly Pick<PermissionPolicy, "background" | "backgroundKeeps">[]
): Pick<PermissionPolicy, "background" | "backgroundKeeps"> {
  const behind = places.filter(({ background }) => background === true);
  if (behind.length === 0) return {};
  const kept = backgroundRights.filter((right) =>
    behind.every(({ backgroundKeeps = [] }) => backgroundKeeps.includes(right)),
  );
  return { background: true, backgroundKeeps: kept.length === 0 ? undefined : kept };
}

/** The call decides, then the definition, then the parent, each only where it may. */
export function childMode(parent: PermissionMode, requestedRights: RequestedRights): PermissionMode {
  if (parent === "bypassPermissions") return parent;
  const { call, definition } = requestedRights;
  if (call !== undefined && (call.by === "program" || isNoWider(call.mode, parent))) return call.mode;
  const own = definition?.mode;
  if (own === undefined || own === "bypassPermissions") return parent;
  if (isNoWider(own, parent)) return own;
  const mayWiden =
    definition?.scope !== "plugin" &&
    (definition?.scope !== "project" || requestedRights.projectMayWiden === true);
  return mayWiden && own === "acceptEdits" && parent === "default" ? own : parent;
}

/** Modes that allow nothing that the parent's would not at least ask for. */
export function isNoWider(mode: PermissionMode, parent: PermissionMode): boolean {
  return mode === parent || narrower[parent].includes(mode);
}

const narrower: Readonly<Record<PermissionMode, readonly PermissionMode[]>> = {
  plan: [],
  delegate: [],
  dontAsk: ["plan"],
  default: ["plan", "dontAsk", "delegate", "auto"],
  auto: ["plan", "dontAsk", "delegate", "default"],
  acceptEdits: ["plan", "dontAsk", "delegate", "default", "auto"],
  bypassPermissions: ["plan", "dontAsk", "delegate", "default", "auto", "acceptEdits"],
};
