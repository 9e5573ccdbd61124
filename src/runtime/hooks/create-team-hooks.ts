import type { HookPayloads } from "../../hooks/hook-input.ts";
import type { CallHookDependencies } from "./call-hooks.ts";

type TeamEvent = "TeammateIdle" | "TaskCreated" | "TaskCompleted";

/** What hooks say about an event of a team: go ahead, not so, or end the teammate. */
export type TeamVerdict =
  | { readonly type: "passed" }
  | { readonly type: "blocked"; readonly reason: string }
  | { readonly type: "stopped"; readonly reason: string };

export interface TeamHooks {
  fire<Event extends TeamEvent>(
    event: Event,
    payload: HookPayloads[Event],
    signal: AbortSignal,
  ): Promise<TeamVerdict>;
}

/** The hooks of a team. A hook that fails or says nothing lets the event pass. */
export function createTeamHooks({
  runner,
  situation,
  report,
}: Pick<CallHookDependencies, "runner" | "situation" | "report">): TeamHooks {
  return {
    async fire(event, payload, signal) {
      if (!runner.hears(event)) return { type: "passed" };
      const outcome = await runner.fire(event, payload, await situation(signal));
      report(outcome);
      const { reason, stop } = outcome;
      if (stop !== undefined) return { type: "stopped", reason: stop };
      const blocked = "blocked" in outcome && outcome.blocked;
      return blocked
        ? { type: "blocked", reason: reason || `a ${event} hook refused it` }
        : { type: "passed" };
    },
  };
}
