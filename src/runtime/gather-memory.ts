import { type LoadedMemory, loadMemory } from "../context/load-memory.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { readEnvironment } from "../settings/environment.ts";
import type { SessionWorld } from "./session-world.ts";

/** The memory of an agent of this session, as settings and trust allow it. */
export async function gatherMemory(
  world: Pick<SessionWorld, "discovered" | "environment" | "trusted">,
  definition: AgentDefinition | undefined,
): Promise<LoadedMemory> {
  if (definition === undefined) return { problems: [] };
  const { paths, settings } = world.discovered;
  const isOff = readEnvironment(world.environment).options.autoMemoryDisabled === true;
  return loadMemory({
    definition,
    paths,
    trusted: world.trusted,
    disabled: isOff || settings.settings.plain.autoMemoryEnabled === false,
  });
}
