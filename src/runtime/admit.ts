import type { Admission, CallRequest } from "../loop/loop-ports.ts";
import { decide, type PermissionRequest, type PolicyRule } from "../permissions/decide.ts";
import { matchesCall } from "../permissions/match-rule.ts";
import { parseRule } from "../permissions/parse-rule.ts";
import type { RunPlan } from "../planning/run-plan.ts";
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
  return async (
    { call, tool, input }: CallRequest,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<Admission> => {
    const written = tool.pathsOf?.(input, directory(), plan.policy.home) ?? [];
    const paths = (await Promise.all(written.map(pathForms))).flat();
    const request = describeCall({ name: tool.name, effect: tool.effect, input, paths });
    const outside = refuseByGrant(request, grants.get(tool.name), plan);
    if (outside !== undefined) return { type: "denied", because: refusal(tool.name, outside) };
    const decision = decide(request, plan.policy);
    if (decision.type === "allow") return { type: "allowed", input };
    if (decision.type === "deny" || canUseTool === undefined) {
      const nobody = decision.type === "ask" ? ", and nobody can be asked here" : "";
      return { type: "denied", because: refusal(tool.name, `${decision.because}${nobody}`) };
    }
    const answer = await canUseTool(tool.name, request.input, {
      signal,
      agentId: plan.agent.id,
      callId: call.id,
      because: decision.because,
    });
    if (answer.behavior === "allow") return { type: "allowed", input: answer.updatedInput ?? input };
    return { type: "denied", because: refusal(tool.name, answer.message ?? "the program refused it") };
  };
}

function refusal(tool: string, because: string): string {
  return `${tool} was not allowed: ${because}. Do without it, or say in your answer what you would have needed.`;
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
  const matches = (text: string, use: "grant" | "restrict"): boolean => {
    const reading = parseRule(`${grant.name}(${text})`);
    if (reading.type === "invalid") return use === "restrict";
    const rule: PolicyRule = { rule: reading.rule, anchor: plan.directory };
    return matchesCall(rule, request, { use, policy: plan.policy });
  };
  if (grant.deny?.some((text) => matches(text, "restrict")))
    return "the agent's definition excludes such calls";
  if (grant.allowOnly !== undefined && !grant.allowOnly.some((text) => matches(text, "grant"))) {
    return `the agent may only make calls that match ${grant.allowOnly.join(", ")}`;
  }
  return undefined;
}
