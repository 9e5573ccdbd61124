import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { DiscoveredAgents } from "../definitions/discover-agents.ts";
import { RetinueError } from "../foundation/retinue-error.ts";

/** The agent that is the main thread, where the call or settings name one. */
export function findMainAgent(
  { registry, settings }: DiscoveredAgents,
  named: string | undefined,
): AgentDefinition | undefined {
  const name = named ?? settings.settings.plain.agent;
  if (name === undefined || name === "") return undefined;
  const found = registry.find(name);
  if (found.type === "found") return found.agent.definition;
  if (found.type === "denied") {
    throw new RetinueError(
      "agent-denied",
      `The agent ${JSON.stringify(name)} is denied by the rule ${found.rule}.`,
    );
  }
  const near = found.nearest === undefined ? "" : ` Did you mean ${found.nearest}?`;
  throw new RetinueError("unknown-agent", `There is no agent ${JSON.stringify(name)}.${near}`, {
    advice: `There are ${found.available.join(", ")}.`,
  });
}
