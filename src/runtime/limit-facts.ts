import type { LimitFacts } from "../planning/limit-plan.ts";
import { type LimitSettings, readLimitSettings } from "../planning/limit-settings.ts";
import { readEnvironment } from "../settings/read-environment.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import type { SessionSetup } from "./runtime-setup.ts";

/** When a silent agent in the background is stopped, unless the environment says otherwise. */
const defaultStallMs = 600_000;

/** Everything about limits that planning asks for; a setting that cannot be used ends the start. */
export function limitFacts(world: RuntimeContext, options: Pick<SessionSetup, "limits">): LimitFacts {
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
