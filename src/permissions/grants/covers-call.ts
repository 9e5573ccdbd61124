import { decide, type PermissionPolicy, type PermissionRequest } from "../decide.ts";
import { parseRule } from "../rules/parse-rule.ts";
import type { ApprovalGrant, ApprovalRecord, GrantUse } from "./approval-record.ts";

/** A call that asks for a grant. */
export interface CoveredCall {
  readonly digest: string;
  /** The agents from the main one to the one whose call it is, by id. */
  readonly path: readonly string[];
  readonly now: number;
  /** Whether the rules of a grant, or the same call once more, would pass everything that settings say. */
  readonly passes: (grant: ApprovalGrant) => boolean;
  /** US dollars spent since the grant, in this process; undefined where a price is not known. */
  readonly usd: number | undefined;
  readonly run: string;
}

/** What has become of a grant. */
export interface GrantState {
  readonly uses: readonly GrantUse[];
  readonly isRevoked: boolean;
}

/** Whether an answer decides a call: the calls it was given for, each once, and further calls in its scope. */
export function coversCall(answer: ApprovalRecord, state: GrantState, call: CoveredCall): boolean {
  const end = answer.type === "allow" ? grantEnd(answer, state, call) : undefined;
  if (end !== undefined && end !== "spent") return false;
  // The calls that were asked about were allowed as they are; money limits what follows.
  if (coversPlace(answer, state, call)) return true;
  if (end !== undefined || answer.type === "deny" || answer.scope === "call") return false;
  const inScope =
    answer.scope === "session" ||
    (answer.scope === "agent"
      ? answer.agents.includes(call.path.at(-1) ?? "")
      : call.path.some((agent) => answer.agents.includes(agent)));
  const isSame = answer.digest === call.digest;
  return inScope && (isSame || answer.rules.length > 0) && call.passes(answer);
}

/** Why a grant holds no more, or undefined while it does. */
export function grantEnd(
  { until, maxUses, maxUsd }: ApprovalGrant,
  { uses, isRevoked }: GrantState,
  { now, usd, run }: Pick<CoveredCall, "now" | "usd" | "run">,
): "revoked" | "expired" | "used up" | "spent" | undefined {
  if (isRevoked) return "revoked";
  if (until !== undefined && now >= until) return "expired";
  if (maxUses !== undefined && uses.length >= maxUses) return "used up";
  if (maxUsd === undefined) return undefined;
  const before = spentByOthers(uses, run);
  return usd === undefined || before + usd >= maxUsd ? "spent" : undefined;
}

/** What other processes had spent when they last used it. */
export function spentByOthers(uses: readonly GrantUse[], run: string): number {
  const byRun = new Map<string, number>();
  for (const use of uses) if (use.run !== run) byRun.set(use.run, Math.max(byRun.get(use.run) ?? 0, use.usd));
  return [...byRun.values()].reduce((sum, usd) => sum + usd, 0);
}

/** Each place that was answered may make its call once. */
function coversPlace({ digest, agents }: ApprovalRecord, { uses }: GrantState, call: CoveredCall): boolean {
  if (digest !== call.digest) return false;
  const agent = call.path.at(-1);
  const granted = agents.filter((id) => id === agent).length;
  return uses.filter((use) => use.agent === agent && use.digest === digest).length < granted;
}

/**
 * Whether allow rules would let a call through: deny rules, ask rules, guards and the mode still decide before them. Without
 * rules the question is whether any rule for the tool could.
 */
export function rulesPass(
  request: PermissionRequest,
  policy: PermissionPolicy,
  { rules, anchor }: { readonly rules: readonly string[]; readonly anchor: string },
): boolean {
  const readings = (rules.length === 0 ? [request.tool] : rules).map((text) =>
    parseRule(text, { list: "allow" }),
  );
  const added = readings.flatMap((reading) =>
    reading.type === "rule" ? [{ rule: reading.rule, anchor }] : [],
  );
  if (added.length !== readings.length) return false;
  return decide(request, { ...policy, allow: [...policy.allow, ...added] }).type === "allow";
}
