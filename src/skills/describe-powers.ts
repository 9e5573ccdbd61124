import type { Skill } from "./skill.ts";
import { hasCommands } from "./skill-pieces.ts";

/** What a skill does besides giving its text, in a few words each. */
export function describePowers({
  allowedTools = [],
  hooks = [],
  body,
  context,
  agent,
}: Skill): readonly string[] {
  return [
    ...(context === "fork" ? [`runs in ${agent ?? "general-purpose"}`] : []),
    ...(allowedTools.length === 0 ? [] : [`allows ${allowedTools.join(", ")}`]),
    ...(hasCommands(body) ? ["runs commands"] : []),
    ...(hooks.length === 0 ? [] : [hooks.length === 1 ? "1 hook" : `${hooks.length} hooks`]),
  ];
}
