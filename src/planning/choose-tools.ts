import type { AvailableTool } from "../tools/match-tools.ts";
import { parseToolEntry } from "../tools/tool-entry.ts";
import { grantTools } from "../tools/tool-grants.ts";

export type ToolChoice =
  | {
      readonly type: "chosen";
      readonly tools: readonly AvailableTool[];
      /** What was named and is not there, each as one sentence. */
      readonly notes: readonly string[];
    }
  | { readonly type: "refused"; readonly reason: string; readonly advice: string };

/** `--tools` names built-in tools; tools of programs and servers are not its business. */
export function chooseTools(
  available: readonly AvailableTool[],
  names: readonly string[] | undefined,
): ToolChoice {
  if (names === undefined) return { type: "chosen", tools: available, notes: [] };
  const narrowed = names.find((text) => parseToolEntry(text).type !== "whole");
  if (narrowed !== undefined) return notAName(narrowed);
  const builtin = available.filter(({ origin }) => origin === "builtin");
  const grant = grantTools({ definition: { tools: names }, available: builtin, role: "main" });
  if (grant.type === "refused") {
    return { type: "refused", reason: grant.reason, advice: `There are ${namesOf(builtin)}.` };
  }
  const chosen = new Set(grant.tools.map(({ name }) => name));
  return {
    type: "chosen",
    tools: available.filter(({ name, origin }) => origin !== "builtin" || chosen.has(name)),
    notes: grant.notes.map(({ message }) => message),
  };
}

function notAName(text: string): ToolChoice {
  return {
    type: "refused",
    reason: `The list of tools holds ${JSON.stringify(text)}, which is not the name of a tool.`,
    advice:
      "Name whole tools there, and say with allowedTools and disallowedTools which calls they may make.",
  };
}

function namesOf(tools: readonly AvailableTool[]): string {
  return tools.map(({ name }) => name).join(", ");
}
