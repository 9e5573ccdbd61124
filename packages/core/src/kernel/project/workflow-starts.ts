import { workflowMeaning as meaningOf } from "@retinue/config/workflows/workflow-meaning.ts";

/** What a script may start, one sentence each. */
export function workflowStarts(text: string): readonly string[] {
  return meaningOf(text)?.starts ?? [];
}
