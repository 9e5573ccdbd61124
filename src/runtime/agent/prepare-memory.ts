import { makeMemoryDirectory } from "../../context/make-memory-directory.ts";
import { isInside } from "../../permissions/permission-policy.ts";
import type { RunPlan } from "../../planning/plan-tools.ts";
import type { Paths } from "../../settings/paths.ts";
import { createWriteInTurn, type WriteInTurn } from "../../tools/write-in-turn.ts";

/** What lies in memory is changed by one process at a time, and an agent's own directory is there before it writes. */
export function createMemoryTurns(
  { memory }: RunPlan,
  { agentMemory }: Pick<Paths, "agentMemory">,
): WriteInTurn {
  return createWriteInTurn({
    roots: Object.values(agentMemory),
    async prepare(path) {
      if (memory !== undefined && isInside(path, [memory.directory])) await makeMemoryDirectory(memory);
    },
  });
}

/** Makes the memory directory of an agent that starts; one that cannot be made is said and hinders nothing else. */
export async function prepareMemory({ memory }: RunPlan, notice?: (text: string) => void): Promise<void> {
  if (memory === undefined) return;
  try {
    await makeMemoryDirectory(memory);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    notice?.(`The memory directory ${memory.directory} could not be made: ${why}`);
  }
}
