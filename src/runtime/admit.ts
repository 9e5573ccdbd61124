import { abortable } from "../foundation/abort.ts";
import type { Admission, CallRequest } from "../loop/loop-ports.ts";
import { type Decision, decide, type PermissionRequest, type PolicyRule } from "../permissions/decide.ts";
import { matchesCall, type RuleUse } from "../permissions/match-rule.ts";
import { parseRule } from "../permissions/parse-rule.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import type { Tool } from "../tools/tool.ts";
import type { GrantedTool } from "../tools/tool-grants.ts";

/** A program's own answer to a call that rules leave open. */
export type CanUseTool = (
  toolName: string,
  input: Readonly<Record<string, unknown>>,
  context: {
    readonly signal: AbortSignal;
    readonly agentId: string;
    readonly callId: string;
    readonly because: string;
  },
) => Promise<
  | { readonly behavior: "allow"; readonly updatedInput?: Readonly<Record<string, unknown>> }
  | { readonly behavior: "deny"; readonly message?: string }
>;

export interface AdmitDependencies {
  readonly plan: RunPlan;
  readonly canUseTool?: CanUseTool;
  /** The forms of a path that rules are compared with: as written and with links followed. */
  readonly pathForms: (path: string) => Promise<readonly string[]>;
  /** The folder calls start in now; a shell may have moved it. */
  readonly directory: () => string;
}

/** Decides about the calls of one run by its plan; what rules leave open is asked of the program, or refused. */
export function createAdmit({ plan, canUseTool, pathForms, directory }: AdmitDependencies) {
  const grants = new Map(plan.tools.map((grant) => [grant.name, grant]));

  async function judge(tool: Tool, input: unknown): Promise<Decision & { request: PermissionRequest }> {
    const written = tool.pathsOf?.(input, directory(), plan.policy.home) ?? [];
    const paths = (await Promise.all(written.map(pathForms))).flat();
    const request = describeCall({ name: tool.name, effect: tool.effect, input, paths });
    const outside = refuseByGrant(request, grants.get(tool.name), plan);
    if (outside !== undefined) return { type: "deny", because: outside, request };
    return { ...decide(request, plan.policy), request };
  }

  return async (
    { call, tool, input }: CallRequest,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<Admission> => {
    const { type, because, request } = await judge(tool, input);
    if (type === "allow") return { type: "allowed", input };
    if (type === "deny") return denied(tool, because);
    if (canUseTool === undefined) return denied(tool, `${because}, and nobody can be asked here`);
    const context = { signal, agentId: plan.agent.id, callId: call.id, because };
    const answer = await abortable(canUseTool(tool.name, request.input, context), signal);
    if (answer.behavior !== "allow") return denied(tool, answer.message ?? "the program refused it");
    if (answer.updatedInput === undefined) return { type: "allowed", input };
    const changed = tool.input?.safeParse(answer.updatedInput) ?? {
      success: true,
      data: answer.updatedInput,
    };
    // An input that the tool cannot read is refused with its flaws after this; a changed one may not pass a denial.
    const again = changed.success ? await judge(tool, changed.data) : undefined;
    if (again?.type === "deny") return denied(tool, again.because);
    return { type: "allowed", input: answer.updatedInput };
  };
}

function denied({ name }: Tool, because: string): Admission {
  const advice = "Do without it, or say in your answer what you would have needed.";
  return { type: "denied", because: `${name} was not allowed: ${because.replace(/\.$/, "")}. ${advice}` };
}

/**
 * Whether a search may show what it finds in a file, by real path: not where a rule denies reading it or wants to be
 * asked first. Undefined where no rule speaks of reading, so that searches need not ask for each file.
 */
export function createMayRead({
  plan,
}: Pick<AdmitDependencies, "plan">): ((path: string) => boolean) | undefined {
  const { deny, ask } = plan.policy;
  if (deny.length === 0 && ask.length === 0 && plan.tools.every((grant) => grant.deny === undefined))
    return undefined;
  const policy = { ...plan.policy, mode: "bypassPermissions" } as const;
  return (path) => {
    const request = { tool: "Read", effect: "read", paths: [path], input: { file_path: path } };
    return !isExcluded(request, plan) && decide(request, policy).type === "allow";
  };
}

function describeCall(call: {
  readonly name: string;
  readonly effect: string;
  readonly input: unknown;
  readonly paths: readonly string[];
}): PermissionRequest {
  const input = typeof call.input === "object" && call.input !== null ? { ...call.input } : {};
  const fields: Readonly<Record<string, unknown>> = input;
  const command = fields["command"];
  const host = hostOf(fields["url"]);
  return {
    tool: call.name,
    effect: call.effect,
    paths: call.paths,
    input: fields,
    ...(typeof command === "string" ? { command } : {}),
    ...(host === undefined ? {} : { host }),
  };
}

function hostOf(url: unknown): string | undefined {
  return typeof url === "string" && URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** A definition's `Bash(git diff *)` grants only such calls, whatever the rules say. */
function refuseByGrant(
  request: PermissionRequest,
  grant: GrantedTool | undefined,
  plan: RunPlan,
): string | undefined {
  if (grant === undefined) return "it is not among the tools of this agent";
  if (grant.confinedTo === "memory")
    return "it works only inside the agent's memory directory, and there is none";
  if (isExcluded(request, plan)) return "the agent's definition excludes such calls";
  const { name, allowOnly } = grant;
  if (
    allowOnly === undefined ||
    allowOnly.some((text) => matches(`${name}(${text})`, "grant", request, plan))
  )
    return undefined;
  return `the agent may only make calls that match ${allowOnly.join(", ")}`;
}

/** What a definition excludes of one reading or editing tool, it excludes of all of them. */
function isExcluded(request: PermissionRequest, plan: RunPlan): boolean {
  return plan.tools.some(({ name, deny = [] }) =>
    deny.some((text) => matches(`${name}(${text})`, "restrict", request, plan)),
  );
}

function matches(text: string, use: RuleUse, request: PermissionRequest, plan: RunPlan): boolean {
  const reading = parseRule(text);
  if (reading.type === "invalid") return use === "restrict" && text.startsWith(`${request.tool}(`);
  const rule: PolicyRule = { rule: reading.rule, anchor: plan.directory };
  return matchesCall(rule, request, { use, policy: plan.policy });
}
