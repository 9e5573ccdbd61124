import type { Tool } from "../tools/tool.ts";
import type { LoopPorts } from "./loop-ports.ts";

/** The tools there are at this turn, in an order that stays. */
export function offeredTools({ tools, isOffered }: Pick<LoopPorts, "tools" | "isOffered">): readonly Tool[] {
  return isOffered === undefined ? tools : tools.filter(isOffered);
}
