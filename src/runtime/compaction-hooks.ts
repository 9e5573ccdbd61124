import type { CompactionPort } from "../loop/loop-ports.ts";
import type { CallHookDependencies } from "./call-hooks.ts";
import { withContext } from "./prompt-hooks.ts";

export interface CompactionHookDependencies
  extends Pick<CallHookDependencies, "runner" | "situation" | "report" | "wantStop"> {
  readonly model: string;
  /** A compaction begins the main agent's session anew; a child has none. */
  readonly isChild: boolean;
}

export type CompactionHooks = Required<Pick<CompactionPort, "before" | "after">>;

/** The hooks around a compaction: one may hold it up or add to its instructions, one hears the summary. */
export function createCompactionHooks(dependencies: CompactionHookDependencies): CompactionHooks {
  const { runner, situation, report, model, isChild, wantStop } = dependencies;
  return {
    async before({ trigger, instructions }, { signal }) {
      if (!runner.hears("PreCompact")) return { type: "granted" };
      const payload = { trigger, instructions: instructions ?? null };
      const outcome = await runner.fire("PreCompact", payload, await situation(signal));
      report(outcome);
      if (outcome.stop !== undefined) wantStop();
      if (outcome.blocked || outcome.stop !== undefined)
        return { type: "blocked", reason: outcome.reason || outcome.stop || "a hook held it up" };
      return { type: "granted", ...(outcome.context === undefined ? {} : { instructions: outcome.context }) };
    },
    async after({ trigger, summary }, { signal }) {
      if (runner.hears("PostCompact"))
        report(await runner.fire("PostCompact", { trigger, summary }, await situation(signal)));
      if (isChild || !runner.hears("SessionStart")) return undefined;
      const payload = { source: "compact", model };
      const outcome = await runner.fire("SessionStart", payload, await situation(signal));
      report(outcome);
      return outcome.context === undefined
        ? undefined
        : { role: "user", content: withContext([], [outcome.context]) };
    },
  };
}
