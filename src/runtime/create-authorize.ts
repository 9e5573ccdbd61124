import { abortable } from "../foundation/abortable.ts";
import type { Authorization, AuthorizeOptions, CallRequest } from "../loop/loop-ports.ts";
import {
  type DecideOptions,
  type Decision,
  decide,
  type PermissionPolicy,
  type PermissionRequest,
} from "../permissions/decide.ts";
import { gatherCallFacts } from "../permissions/gather-call-facts.ts";
import { isInside } from "../permissions/is-inside.ts";
import { suggestRules } from "../permissions/rules/suggest-rules.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import type { Tool } from "../tools/tool.ts";
import type { AskPerson } from "./ask-person.ts";
import type { TurnRights } from "./skill-turn.ts";

/** A program's own answer to a call that rules leave open. */
export type CanUseTool = (
  toolName: string,
  input: Readonly<Record<string, unknown>>,
  context: {
    readonly signal: AbortSignal;
    readonly agentId: string;
    readonly callId: string;
    readonly reason: string;
    /** Whose tool it is, where it is one of an MCP server. */
    readonly server?: { readonly name: string; readonly source: string };
    /** Rules that together would have allowed this call; none where no rule can. */
    readonly suggestedRules: () => readonly string[];
    /** Paths of the call that lie outside of the working directories. */
    readonly outsidePaths: () => readonly string[];
  },
) => Promise<
  | { readonly behavior: "allow"; readonly updatedInput?: Readonly<Record<string, unknown>> }
  /** `interrupt`: the run is to end after this turn. */
  | { readonly behavior: "deny"; readonly message?: string; readonly interrupt?: boolean }
  /** Leaves it to the approver; without one the call is refused. */
  | { readonly behavior: "ask" }
>;

/** An answer in the place of the program and the person; undefined leaves the call to them. */
export type BeforeAsk = (
  request: CallRequest,
  options: { readonly signal: AbortSignal },
) => Promise<
  | { readonly behavior: "allow"; readonly updatedInput?: Readonly<Record<string, unknown>> }
  | { readonly behavior: "deny"; readonly message: string; readonly stops?: boolean }
  | undefined
>;

export type AuthorizeWithHooks = (
  request: CallRequest,
  options: AuthorizeOptions & { readonly hooks?: DecideOptions["hooks"] },
) => Promise<Authorization>;

export interface AuthorizeDependencies {
  readonly plan: RunPlan;
  /** Rules that hold beside those of the plan as long as a turn lasts. */
  readonly rights?: () => TurnRights;
  /** The policy as the host has changed it since the plan was made. */
  readonly livePolicy?: ((planned: PermissionPolicy) => PermissionPolicy) | undefined;
  readonly beforeAsk?: BeforeAsk;
  /** Hears that a person is about to be asked. */
  readonly onAsk?: (request: CallRequest) => void;
  readonly canUseTool?: CanUseTool;
  /** Puts to a person what rules and the program leave open; absent when nobody can be asked. */
  readonly askPerson?: AskPerson;
  /** The folder calls start in now; a shell may have moved it. */
  readonly directory: () => string;
}

/** Decides about the calls of one run by its plan; what rules leave open is asked of the program, or refused. */
export function createAuthorize(dependencies: AuthorizeDependencies): AuthorizeWithHooks {
  const { plan, canUseTool, askPerson, beforeAsk, onAsk, directory } = dependencies;
  const attended = canUseTool !== undefined || askPerson !== undefined || beforeAsk !== undefined;

  async function judge(
    tool: Tool,
    input: unknown,
    hooks: DecideOptions["hooks"],
  ): Promise<Decision & { request: PermissionRequest; policy: PermissionPolicy }> {
    const { name, effect } = tool;
    const planned = askPerson?.policy() ?? plan.policy;
    const policy = withRights(dependencies.livePolicy?.(planned) ?? planned, dependencies.rights?.());
    const paths = tool.pathsOf?.(input, directory(), policy.home) ?? [];
    const mcp = tool.mcp ?? tool.mcpOf?.(input);
    const call = { tool: name, effect, input, paths, ...(mcp === undefined ? {} : { mcp }) };
    const request = await gatherCallFacts(call, { policy, directory: directory() });
    return {
      ...decide(request, policy, { attended, ...(hooks === undefined ? {} : { hooks }) }),
      request,
      policy,
    };
  }

  return async ({ call, tool, input }, { signal, turn, hooks }) => {
    await turn?.();
    const { type, reason, allowedBy, run, request, policy } = await judge(tool, input, hooks);
    const wayOut = (): string => wayOutOf(request, policy, plan.directory);
    const paths = approvedPaths(request, plan.policy);
    if (type === "allow")
      return {
        type: "allowed",
        input,
        ...(allowedBy === undefined ? {} : { allowedBy }),
        ...(run === undefined ? {} : { run }),
        ...paths,
      };
    if (type === "deny") return denied(tool, reason, wayOut());
    const { mcp } = tool;
    const context = {
      signal,
      agentId: plan.agent.id,
      callId: call.id,
      reason,
      ...(mcp === undefined ? {} : { server: { name: mcp.serverName, source: mcp.source } }),
      suggestedRules: () => suggestRules(request, policy, { anchor: plan.directory }),
      outsidePaths: () => outsidePaths(request, policy),
    };
    const fromHooks = await beforeAsk?.({ call, tool, input }, { signal });
    if (fromHooks?.behavior === "deny")
      return {
        ...denied(tool, fromHooks.message),
        asked: true,
        ...(fromHooks.stops === true ? { stops: true } : {}),
      };
    const fromProgram =
      fromHooks === undefined && canUseTool !== undefined
        ? await abortable(canUseTool(tool.name, request.input, context), signal)
        : ({ behavior: "ask" } as const);
    const answer = fromHooks ?? fromProgram;
    if (answer.behavior === "deny")
      return {
        ...denied(tool, answer.message ?? "the program refused it"),
        asked: true,
        ...("interrupt" in answer && answer.interrupt === true ? { stops: true } : {}),
      };
    if (answer.behavior === "ask") {
      if (askPerson === undefined) return denied(tool, `${reason}, and nobody can be asked here`, wayOut());
      onAsk?.({ call, tool, input });
      const said = await askPerson.ask({ callId: call.id, request, reason }, { signal });
      return said.type === "allowed"
        ? { type: "allowed", input, allowedBy: "person", asked: true, ...paths }
        : { ...denied(tool, said.reason), asked: true, stops: said.stops };
    }
    const by = { allowedBy: fromHooks === undefined ? "program" : "hook" } as const;
    if (answer.updatedInput === undefined) return { type: "allowed", input, ...by, ...paths };
    const changed = tool.input?.safeParse(answer.updatedInput) ?? {
      success: true,
      data: answer.updatedInput,
    };
    // An input that the tool cannot read is refused with its flaws after this; a changed one may not pass a denial.
    const again = changed.success ? await judge(tool, changed.data, hooks) : undefined;
    if (again?.type === "deny") return denied(tool, again.reason);
    const changedPaths = again === undefined ? {} : approvedPaths(again.request, plan.policy);
    return { type: "allowed", input: answer.updatedInput, ...by, ...changedPaths };
  };
}

/** What the tool has to find again when it acts. On Windows paths are compared in a spelling of their own. */
function approvedPaths(
  { facts }: PermissionRequest,
  { platform }: PermissionPolicy,
): { readonly paths?: readonly string[] } {
  if (facts === undefined || facts.paths.length === 0 || platform === "win32") return {};
  return { paths: facts.paths.flatMap(({ forms }) => forms) };
}

function outsidePaths(
  { facts }: PermissionRequest,
  { workingDirectories }: PermissionPolicy,
): readonly string[] {
  const forms = facts?.paths.flatMap(({ forms: [first] }) => first ?? []) ?? [];
  return forms.filter((path) => !isInside(path, workingDirectories));
}

function withRights(policy: PermissionPolicy, rights: TurnRights | undefined): PermissionPolicy {
  if (rights === undefined || rights.allow.length + rights.deny.length === 0) return policy;
  return { ...policy, allow: [...policy.allow, ...rights.allow], deny: [...policy.deny, ...rights.deny] };
}

function denied(
  { name }: Tool,
  reason: string,
  wayOut = "",
): Extract<Authorization, { readonly type: "denied" }> {
  const advice = "Do without it, or say in your answer what you would have needed.";
  const refusal = `${name} was not allowed: ${reason.replace(/\.$/, "")}.`;
  return { type: "denied", reason: [refusal, wayOut, advice].filter((text) => text !== "").join(" ") };
}

/** The narrow rules that would let exactly this call through, where rules can do that in this mode. */
function wayOutOf(request: PermissionRequest, policy: PermissionPolicy, anchor: string): string {
  const rules = suggestRules(request, policy, { anchor, exact: true });
  if (rules.length === 0) return "";
  const list = rules.map((rule) => `\`${rule}\``).join(" and ");
  return `A person can allow exactly this with ${rules.length === 1 ? "the rule" : "the rules"} ${list} (permissions.allow in the settings, or --allowedTools).`;
}
