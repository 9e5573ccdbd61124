/**
 * Files that steer programs, and whose change somebody has allowed while edits are accepted: they are asked about once.
 * A yes holds for the agent that asked and those below it, as long as the session runs.
 */
export interface AcceptedFiles {
  forAgent(agentId: string, parentId?: string): AgentFiles;
}

export interface AgentFiles {
  /** The agent's own, and those of the agents above it. */
  list(): readonly string[];
  add(files: readonly string[]): void;
}

export function createAcceptedFiles(): AcceptedFiles {
  const agents = new Map<string, AgentFiles>();
  return {
    forAgent(agentId, parentId) {
      const own = new Set<string>();
      const known = agents.get(agentId);
      if (known !== undefined) return known;
      const above = (): readonly string[] =>
        parentId === undefined || parentId === agentId ? [] : (agents.get(parentId)?.list() ?? []);
      const files: AgentFiles = {
        list: () => [...above(), ...own],
        add: (added) => added.forEach((file) => void own.add(file)),
      };
      agents.set(agentId, files);
      return files;
    },
  };
}
