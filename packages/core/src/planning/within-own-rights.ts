import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { isNoWider, joinBackground } from "@retinue/gate/build-policy.ts";
import { describeRule } from "@retinue/gate/decide.ts";
import {
  isInside,
  type PermissionMode,
  type PermissionPolicy,
  type PolicyRule,
  type ToolScopes,
} from "@retinue/gate/permission-policy.ts";
import type { AgentPlan, ChildPlan } from "./agent-plan.ts";

/**
 * What a process that carries out the plans of others may accept of them beyond the own rights:
 * `rules`: their allow rules; `mode`: wider modes, but for the next; `bypass`: `bypassPermissions`;
 * `programs`: hooks and MCP servers that are in their definitions.
 */
export const acceptableRights = ["rules", "mode", "bypass", "programs"] as const;

export type AcceptedRight = (typeof acceptableRights)[number];

/** The words of an option, such as `rules,mode`, `all` or `none`; undefined where one is not known. */
export function parseAcceptedRights(text: string): readonly AcceptedRight[] | undefined {
  const words = text.split(/[\s,]+/).filter((word) => word !== "");
  if (words.includes("all")) return words.length === 1 ? acceptableRights : undefined;
  if (words.includes("none")) return words.length === 1 ? [] : undefined;
  const known = words.flatMap((word) => acceptableRights.filter((right) => right === word));
  return known.length === words.length && words.length > 0 ? known : undefined;
}

/** A policy, and what of the other one did not count, each as one sentence. */
interface NarrowedPolicy {
  readonly policy: PermissionPolicy;
  readonly cut: readonly string[];
}

/**
 * The policy of a plan that was made elsewhere, under the rights that hold here. What it denies, asks about or confines is
 * added; what it allows counts only as far as it is accepted. Everything that is not named here is that of this place.
 */
export function narrowPolicy(
  foreign: PermissionPolicy,
  own: PermissionPolicy,
  accepts: readonly AcceptedRight[],
): NarrowedPolicy {
  const mode = narrowMode(foreign.mode, own.mode, accepts);
  const allow = joined(own.allow, foreign.allow);
  const added = allow.slice(own.allow.length);
  const takesRules = accepts.includes("rules");
  const isTrusted = own.trusted === true && foreign.trusted !== false;
  const outerModes = [...(own.outerModes ?? []), ...(foreign.outerModes ?? [])];
  const directories = foreign.workingDirectories.filter((path) => isInside(path, own.workingDirectories));
  const isBelow = directories.length > 0 && directories.length === foreign.workingDirectories.length;
  return {
    policy: {
      ...own,
      mode: mode.value,
      allow: takesRules ? allow : own.allow,
      ask: joined(foreign.ask, own.ask),
      deny: joined(foreign.deny, own.deny),
      workingDirectories: isBelow ? directories : own.workingDirectories,
      ...(own.trusted === undefined ? {} : { trusted: isTrusted }),
      ...(outerModes.length === 0 ? {} : { outerModes }),
      ...joinBackground(own, foreign),
      ...(foreign.deniesInsteadOfAsking === true ? { deniesInsteadOfAsking: true } : {}),
      ...joinConfinement(foreign, own),
    },
    cut: [...mode.cut, ...(takesRules ? [] : describeCutRules(added))],
  };
}

function narrowMode(
  foreign: PermissionMode,
  own: PermissionMode,
  accepts: readonly AcceptedRight[],
): { readonly value: PermissionMode; readonly cut: readonly string[] } {
  const isAccepted = accepts.includes(foreign === "bypassPermissions" ? "bypass" : "mode");
  if (isAccepted || isNoWider(foreign, own)) return { value: foreign, cut: [] };
  return { value: own, cut: [`The mode ${foreign} of the plan is not applied here; the mode is ${own}.`] };
}

/** Rules of the runtime itself, for its own folders, were not requested. */
function describeCutRules(rules: readonly PolicyRule[]): readonly string[] {
  const requested = rules.filter(({ reason, from, anchor }) => reason === undefined && from !== anchor);
  const written = [...new Set(requested.map((rule) => describeRule(rule)))];
  if (written.length === 0) return [];
  const shown = written.slice(0, maxShown).join(", ");
  const more = written.length > maxShown ? ` and ${written.length - maxShown} more` : "";
  return [`Allow rules of the plan are not applied here: ${shown}${more}.`];
}

const maxShown = 5;

function joinConfinement(
  { confinement: a }: PermissionPolicy,
  { confinement: b }: PermissionPolicy,
): Pick<PermissionPolicy, "confinement"> {
  if (a === undefined || b === undefined) {
    const confinement = a ?? b;
    return confinement === undefined ? {} : { confinement };
  }
  const [mine, theirs] = [b.readsExcept, a.readsExcept];
  const both =
    mine === undefined || theirs === undefined
      ? (mine ?? theirs)
      : mine.filter((path) => theirs.includes(path));
  return {
    confinement: {
      readsExcept: both,
      ...(a.writes === true || b.writes === true ? { writes: true } : {}),
    },
  };
}

/** What this process has decided itself: for the main agent of the session, and, where it knows it, for the same child. */
export interface OwnPlans {
  readonly main: AgentPlan;
  readonly child?: ChildPlan;
}

/**
 * The plan of a child that was made elsewhere, under the rights that hold here. Hooks, servers and memory count where this
 * process would give them to the same agent, hooks and servers also where they are accepted. What did not count is in `notes`.
 */
export function withinOwnRights(
  plan: ChildPlan,
  { main, child }: OwnPlans,
  accepts: readonly AcceptedRight[],
): ChildPlan {
  const { policy, cut } = narrowPolicy(plan.policy, (child ?? main).policy, accepts);
  const definition = narrowDefinition(plan.definition, child?.definition, accepts);
  const keepsMemory = plan.memory !== undefined && plan.memory.directory === child?.memory?.directory;
  const { skill, team, ...task } = plan.task;
  const { memory, ...rest } = plan;
  const hooks = accepts.includes("programs") ? (skill?.hooks ?? []) : [];
  const skillCut =
    skill === undefined || skill.hooks.length === hooks.length
      ? []
      : [`Hooks of the skill ${skill.name} in the plan do not run here.`];
  const memoryCut =
    memory === undefined || keepsMemory
      ? []
      : [`The memory ${memory.directory} of the plan is not used here.`];
  const scopes = (plan.policy.toolScopes ?? []).map((scope) => withMemory(scope, keepsMemory));
  const servers = definition.isCut ? plan.mcpServers?.filter(({ own }) => !own) : plan.mcpServers;
  return {
    ...rest,
    ...narrowChecks(plan, child, accepts),
    ...(keepsMemory && memory !== undefined ? { memory } : {}),
    ...(servers === undefined ? {} : { mcpServers: servers }),
    definition: definition.value,
    policy: { ...policy, toolScopes: [...(main.policy.toolScopes ?? []), ...scopes] },
    task: {
      ...task,
      ...(skill === undefined
        ? {}
        : { skill: { ...skill, hooks, allow: accepts.includes("rules") ? skill.allow : [] } }),
      ...(team === undefined ? {} : { team: narrowTeam(team, policy.mode) }),
    },
    notes: [...new Set([...plan.notes, ...cut, ...definition.cut, ...skillCut, ...memoryCut])],
  };
}

/** Checks that came with a plan run where this process would run the same ones, or where programs of plans are accepted. */
export function narrowChecks(
  { verify }: Pick<AgentPlan, "verify">,
  own: Pick<AgentPlan, "verify"> | undefined,
  accepts: readonly AcceptedRight[],
): Pick<AgentPlan, "verify"> {
  if (verify === undefined || accepts.includes("programs")) return verify === undefined ? {} : { verify };
  const known = new Set(
    own?.verify?.checks.flatMap(({ run, refused }) => (refused === undefined ? [run] : [])),
  );
  const refused = "it came with a plan, and checks from plans do not run here";
  return {
    verify: {
      ...verify,
      checks: verify.checks.map((check) => (known.has(check.run) ? check : { ...check, refused })),
    },
  };
}

/** A folder that tools may use without a rule is only ever one that was found here. */
function withMemory({ memoryDirectory, ...scope }: ToolScopes, keeps: boolean): ToolScopes {
  return { ...scope, ...(keeps && memoryDirectory !== undefined ? { memoryDirectory } : {}) };
}

/** The mode that a member gets with the approval of its lead is no wider than the one it may have now. */
function narrowTeam<Team extends { readonly approvedMode?: PermissionMode }>(
  { approvedMode, ...team }: Team,
  mode: PermissionMode,
): Omit<Team, "approvedMode"> & { readonly approvedMode?: PermissionMode } {
  return {
    ...team,
    ...(approvedMode !== undefined && isNoWider(approvedMode, mode) ? { approvedMode } : {}),
  };
}

type Programs = Pick<AgentDefinition, "name" | "hooks" | "mcpServers" | "permissionMode">;

/** A definition that came with a plan, without what would start programs here; `own` is the same agent as it is known here. */
export function narrowDefinition<Definition extends Programs>(
  definition: Definition,
  own: Programs | undefined,
  accepts: readonly AcceptedRight[],
): { readonly value: Definition; readonly cut: readonly string[]; readonly isCut: boolean } {
  const { name, hooks = [], mcpServers = [], permissionMode } = definition;
  const takesPrograms = accepts.includes("programs");
  const keepsHooks = takesPrograms || hooks.length === 0 || isSameJson(hooks, own?.hooks);
  const isOwnServer = (server: unknown): boolean =>
    own?.mcpServers?.some((known) => isSameJson(known, server)) === true;
  const servers = mcpServers.filter(
    (server) => takesPrograms || server.type === "reference" || isOwnServer(server),
  );
  const keepsServers = servers.length === mcpServers.length;
  const keepsMode =
    permissionMode === undefined || accepts.includes("mode") || isNoWider(permissionMode, "default");
  const { hooks: ownHooks, permissionMode: ownMode, ...rest } = definition;
  const value = {
    ...rest,
    ...(keepsHooks && ownHooks !== undefined ? { hooks: ownHooks } : {}),
    ...(keepsMode && ownMode !== undefined ? { permissionMode: ownMode } : {}),
    ...(keepsServers ? {} : { mcpServers: servers }),
  };
  return {
    // Only optional fields were taken away.
    value: value as unknown as Definition,
    cut: [
      ...(keepsHooks ? [] : [`Hooks of the agent ${name} in the plan do not run here.`]),
      ...(keepsServers ? [] : [`MCP servers of the agent ${name} in the plan are not started here.`]),
      ...(keepsMode
        ? []
        : [`The mode ${permissionMode} of the agent ${name} in the plan is not applied here.`]),
    ],
    isCut: !keepsServers,
  };
}

/** One of them has been JSON. */
function isSameJson(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/**
 * A plan that was made elsewhere, under the rules that hold here as well: deny and ask rules of this session are added, and
 * a folder that is not trusted here is not trusted. The same rules are not added twice, so that a plan of the same settings
 * stays as it is. Never widens anything.
 */
export function withinSession<Plan extends Pick<AgentPlan, "policy">>(
  plan: Plan,
  session: Pick<AgentPlan, "policy">,
): Plan {
  const { policy } = plan;
  const trusted = policy.trusted === true && session.policy.trusted === true;
  return {
    ...plan,
    policy: {
      ...policy,
      ask: joined(policy.ask, session.policy.ask),
      deny: joined(policy.deny, session.policy.deny),
      ...(policy.trusted === undefined ? {} : { trusted }),
    },
  };
}

/** The rules of both, each once. */
function joined(own: readonly PolicyRule[], others: readonly PolicyRule[]): readonly PolicyRule[] {
  const known = new Set(own.map(keyOf));
  return [...own, ...others.filter((rule) => !known.has(keyOf(rule)))];
}

function keyOf({ rule, anchor }: PolicyRule): string {
  return JSON.stringify([rule, anchor]);
}
