import { type LimitSettings, readLimitSettings } from "../planning/limit-settings.ts";
import type { LimitFacts } from "../planning/plan-limits.ts";
import { readEnvironment } from "../settings/environment.ts";
import type { SessionOptions } from "./runtime-options.ts";
import type { RuntimeContext } from "./session-world.ts";

/** When a silent agent in the background is stopped, unless the environment says otherwise. */
const defaultStallMs = 600_000;

/** Everything about limits that planning asks for; a setting that cannot be used ends the start. */
export function limitFacts(world: RuntimeContext, options: Pick<SessionOptions, "limits">): LimitFacts {
  const { settings } = world.discovered.settings;
  const { agentStallTimeoutMs } = readEnvironment(world.environment).options;
  const limits: LimitSettings = readLimitSettings(settings.plain.limits);
  return {
    settings: limits,
    settingsFrom: (name) => settings.sources.get(name)?.file,
    ...(options.limits === undefined ? {} : { session: options.limits }),
    background:
      agentStallTimeoutMs === undefined
        ? { stopMs: defaultStallMs, from: "the default" }
        : { stopMs: agentStallTimeoutMs, from: "CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS" },
  };
}
