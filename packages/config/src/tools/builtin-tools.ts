import { type ToolEffect, type ToolName, toolTable } from "@retinue/base/foundation/tool-table.ts";

export type { ToolEffect };

export interface ToolSummary {
  readonly name: ToolName;
  readonly effect: ToolEffect;
  /** It works on child agents, so only agents that can start some have it. */
  readonly needsChildren?: true;
  readonly description: string;
}

/** The tools that this product has, as the table of tools declares them. */
export const builtinTools: readonly ToolSummary[] = toolTable
  .filter(({ isAbsent }) => isAbsent !== true)
  .map(({ name, effect, needsChildren, description }) => ({
    name,
    effect,
    needsChildren,
    description,
  }));
