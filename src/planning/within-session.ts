import type { PolicyRule } from "../permissions/permission-policy.ts";
import type { RunPlan } from "./run-plan.ts";

/**
 * A plan that was made elsewhere, under the rules that hold here as well: deny and ask rules of this session are added, and
 * a folder that is not trusted here is not trusted. The same rules are not added twice, so that a plan of the same settings
 * stays as it is. Never widens anything.
 */
export function withinSession<Plan extends Pick<RunPlan, "policy">>(
  plan: Plan,
  session: Pick<RunPlan, "policy">,
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
export function joined(own: readonly PolicyRule[], others: readonly PolicyRule[]): readonly PolicyRule[] {
  const known = new Set(own.map(keyOf));
  return [...own, ...others.filter((rule) => !known.has(keyOf(rule)))];
}

function keyOf({ rule, anchor }: PolicyRule): string {
  return JSON.stringify([rule, anchor]);
}
