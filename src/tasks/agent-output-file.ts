import { join } from "node:path";
import { checkAgentId } from "../journal/session-files.ts";

/** Where a child's work can be followed. */
export function agentOutputFile({ directory }: { readonly directory: string }, agentId: string): string {
  return join(directory, "tasks", `${checkAgentId(agentId)}.output`);
}
