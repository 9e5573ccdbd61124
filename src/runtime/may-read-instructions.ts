import type { InstructionOptions } from "../context/load-instructions.ts";
import type { DiscoveredAgents } from "../definitions/discover-agents.ts";
import { decide, type PermissionPolicy, type PolicyRule } from "../permissions/decide.ts";
import { sessionRules } from "./session-rules.ts";

type MayRead = NonNullable<InstructionOptions["mayRead"]>;

/**
 * Whether deny rules let an instruction file be read, by all its paths. A rule without a path only takes the tool away;
 * undefined where no rule names one.
 */
export function mayReadInstructions(
  rules: readonly PolicyRule[],
  { cwd, home, platform }: { readonly cwd: string; readonly home: string; readonly platform: string },
): MayRead | undefined {
  const deny = rules.filter(
    ({ rule }) => rule.canonicalTool === "Read" && !["whole", "toolGlob"].includes(rule.specifier.type),
  );
  if (deny.length === 0) return undefined;
  const open: PermissionPolicy = {
    mode: "bypassPermissions",
    allow: [],
    ask: [],
    deny,
    workingDirectories: [cwd],
    home,
    platform,
  };
  return (forms) => decide({ tool: "Read", effect: "read", paths: forms, input: {} }, open).type !== "deny";
}

/** The same by the rules of settings alone, where no session is started. */
export function mayReadHere(
  { settings, paths }: Pick<DiscoveredAgents, "settings" | "paths">,
  platform: string,
): MayRead | undefined {
  return mayReadInstructions(sessionRules(settings, {}, paths.cwd).deny, { ...paths, platform });
}
