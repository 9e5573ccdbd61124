import { decide } from "../permissions/decide.ts";
import type { RunPlan } from "../planning/run-plan.ts";

/** The provider runs the search itself, so there is no call to decide about: it is offered only where it is allowed. */
export function maySearch({ tools, policy }: RunPlan): boolean {
  const isGranted = tools.some(({ name }) => name === "WebSearch");
  const call = { tool: "WebSearch", effect: "network", paths: [], input: {} };
  return isGranted && decide(call, policy).type === "allow";
}
