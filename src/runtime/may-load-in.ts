import type { DiscoveredAgents } from "../definitions/discover-agents.ts";
import { createMayLoad, type MayLoad } from "../permissions/may-load.ts";
import type { PolicyRule } from "../permissions/permission-policy.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { type RuleFlags, sessionRules } from "./session-rules.ts";

/** Whether rules of a session let a file be loaded into a prompt; `more` are deny rules of the agent it is loaded for. */
export function mayLoadIn(
  {
    discovered,
    disallowedTools,
    platform,
  }: Pick<RuntimeContext, "discovered" | "disallowedTools" | "platform">,
  options: RuleFlags,
  more: readonly PolicyRule[] = [],
): MayLoad | undefined {
  const { paths, settings } = discovered;
  const flags = { disallowedTools: [...disallowedTools, ...(options.disallowedTools ?? [])] };
  const { deny, ask } = sessionRules(settings, flags, paths.cwd);
  return createMayLoad({ deny: [...deny, ...more], ask }, { ...paths, platform });
}

/** The same by the rules of settings alone, where no session is started. */
export function mayLoadHere(
  { settings, paths }: Pick<DiscoveredAgents, "settings" | "paths">,
  platform: string,
): MayLoad | undefined {
  return createMayLoad(sessionRules(settings, {}, paths.cwd), { ...paths, platform });
}
