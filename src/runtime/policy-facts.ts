import type { DiscoveredAgents } from "../definitions/discover-agents.ts";
import type { PolicyFacts } from "../permissions/build-policy.ts";
import type { ModeWishes } from "../planning/decide-mode.ts";
import { sandboxRights } from "../tools/sandbox/sandbox-settings.ts";
import { type RuleFlags, sessionRules } from "./session-rules.ts";

export interface PolicySource {
  readonly discovered: Pick<DiscoveredAgents, "paths" | "settings">;
  readonly trusted: boolean;
  readonly platform: string;
}

/** What settings and options say about rights and the mode: the same for a run, a plan and an explanation. */
export function policyFacts(
  { discovered: { paths, settings }, trusted, platform }: PolicySource,
  flags: RuleFlags,
): Omit<PolicyFacts, "workingDirectories"> & Pick<ModeWishes, "settingsMode" | "bypassForbidden"> {
  const { permissions, sources, plain } = settings.settings;
  const sandbox = sandboxRights(plain.sandbox);
  const mode = permissions.defaultMode;
  return {
    rules: sessionRules(settings, flags, paths.cwd),
    ...(mode === undefined
      ? {}
      : { settingsMode: { mode, from: sources.get("permissions.defaultMode")?.file ?? "settings" } }),
    bypassForbidden: permissions.switches.disableBypassPermissionsMode === "disable",
    switches: permissions.switches,
    directory: paths.cwd,
    home: paths.home,
    platform,
    ...(sandbox === undefined ? {} : { sandbox }),
    trusted,
  };
}
