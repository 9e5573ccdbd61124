import type { MemoryPlace } from "../context/memory-place.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { ToolScopes } from "../permissions/permission-policy.ts";
import type { RunPlan } from "./run-plan.ts";

type MemoryFields = Pick<AgentDefinition, "tools" | "disallowedTools" | "mcpServers" | "memory">;

/** What memory, or its absence, means for tools, rights and plan: an agent whose memory is off has no tools for it. */
export function memoryFacts(
  definition: Partial<MemoryFields>,
  place: MemoryPlace | undefined,
): {
  readonly definition: Partial<MemoryFields>;
  readonly scope: Pick<ToolScopes, "memoryDirectory">;
  readonly plan: Pick<RunPlan, "memory">;
} {
  if (place !== undefined) {
    return { definition, scope: { memoryDirectory: place.directory }, plan: { memory: place } };
  }
  const { memory: _memory, ...rest } = definition;
  return { definition: rest, scope: {}, plan: {} };
}
