import { RetinueError } from "../foundation/retinue-error.ts";
import type { PolicyRule } from "../permissions/decide.ts";
import { planSession, type SessionFacts } from "../planning/plan-session.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import { sandboxRights } from "../tools/sandbox-settings.ts";
import { limitFacts } from "./limit-facts.ts";
import type { SessionOptions } from "./runtime-options.ts";
import { ruleNotes, sessionRules } from "./session-rules.ts";
import type { RuntimeContext } from "./session-world.ts";

/** What opening a session found out for its plan. */
export type FactsFound = Pick<
  SessionFacts,
  | "definition"
  | "model"
  | "canSearch"
  | "available"
  | "servers"
  | "system"
  | "memory"
  | "skills"
  | "workingDirectories"
  | "notes"
>;

/** The plan of the main agent, or the reason why there is none, as a fault. */
export function decidePlan(
  world: RuntimeContext,
  options: SessionOptions,
  sessionId: string,
  found: FactsFound & { readonly outputRules: readonly PolicyRule[] },
): RunPlan {
  const { paths, settings } = world.discovered;
  const { permissions, sources } = settings.settings;
  const disallowedTools = [...world.disallowedTools, ...(options.disallowedTools ?? [])];
  const mode = permissions.defaultMode;
  const sandbox = sandboxRights(settings.settings.plain.sandbox);
  const rules = sessionRules(settings, { ...options, disallowedTools }, paths.cwd);
  const planned = planSession(
    { ...options, sessionId, agentId: "main" },
    {
      ...found,
      notes: [...(found.notes ?? []), ...ruleNotes(rules)],
      limits: limitFacts(world, options),
      rules: { ...rules, allow: [...rules.allow, ...found.outputRules] },
      ...(mode === undefined
        ? {}
        : { settingsMode: { mode, from: sources.get("permissions.defaultMode")?.file ?? "settings" } }),
      bypassForbidden: permissions.switches.disableBypassPermissionsMode === "disable",
      directory: paths.cwd,
      home: paths.home,
      platform: world.platform,
      ...(sandbox === undefined ? {} : { sandbox }),
      trusted: world.trusted,
    },
  );
  if (planned.type === "planned") return planned.plan;
  const { reason, advice, code = "plan-refused" } = planned;
  throw new RetinueError(code, reason, advice === undefined ? {} : { advice });
}
