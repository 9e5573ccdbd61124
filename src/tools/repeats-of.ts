import type { Repeats } from "../conversation/interrupted-agent.ts";
import type { Tool } from "./tool.ts";

/** What repeating a call of this tool does: as the tool or its server says, else by what using it does to the world. */
export function repeatsOf({
  repeats,
  effect,
  origin,
  mcp,
}: Pick<Tool, "repeats" | "effect" | "origin" | "mcp">): Repeats {
  if (repeats !== undefined) return repeats;
  // What is offered here for the network only fetches; a program's own tool may send.
  if (effect === "read" || (effect === "network" && origin !== "program")) return "pure";
  return mcp?.hints.idempotent === true ? "idempotent" : "unsafe";
}
