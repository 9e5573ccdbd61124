import { compactionThreshold } from "../../loop/compaction-threshold.ts";
import type { CompactionPort } from "../../loop/loop-ports.ts";
import type { ModelFacts } from "../../model/model.ts";
import { readEnvironment } from "../../settings/read-environment.ts";
import type { SessionHooks } from "../hooks/session-hooks.ts";
import type { RuntimeContext } from "../runtime-context.ts";

export interface CompactionParts {
  readonly world: Pick<RuntimeContext, "environment" | "discovered" | "live">;
  /** Of the agent's own model, which may have another window than its parent's. */
  readonly model: Pick<ModelFacts, "contextWindow">;
  readonly hooks: Pick<SessionHooks, "compaction"> | undefined;
  readonly restate: () => readonly string[];
}

/** How an agent's conversation is compacted, as settings and variables say; undefined where it never is. */
export function createCompactionPort({
  world,
  model,
  hooks,
  restate,
}: CompactionParts): CompactionPort | undefined {
  const { options } = readEnvironment(world.environment);
  if (options.compactDisabled === true) return undefined;
  const { autoCompactEnabled, autoCompactWindow } = world.discovered.settings.settings.plain;
  const thresholdTokens = compactionThreshold(model.contextWindow, {
    automatic: options.autoCompactDisabled !== true && autoCompactEnabled !== false,
    percent: options.autoCompactPercent,
    windows: [options.autoCompactWindow, autoCompactWindow],
  });
  return {
    ...(thresholdTokens === undefined ? {} : { thresholdTokens }),
    ...hooks?.compaction,
    restate,
    ...(world.live?.compactsShort === true ? { compactsShort: true } : {}),
  };
}
