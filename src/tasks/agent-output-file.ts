import { join } from "node:path";

/** Where a child's work can be followed. */
export function agentOutputFile({ directory }: { readonly directory: string }, agentId: string): string {
  return join(directory, "tasks", `${agentId}.output`);
}
