import { createHash } from "node:crypto";
import { type McpIdentity, mcpServerPart, mcpToolPart } from "@retinue/gate/call-facts.ts";

export { mcpServerPart } from "@retinue/gate/call-facts.ts";

/** What providers take as the name of a tool. */
const maxName = 64;
const shortestToolPart = 16;
const digestLength = 8;

/**
 * The name a model sees: `mcp__<server>__<tool>`, only letters, digits, `_` and `-`, at most 64 characters. One that is too
 * long keeps its beginning and ends in a hash of the whole pair, so it is the same in every session.
 */
export function mcpToolName(server: string, tool: string): string {
  const identity = mcpIdentity(server, tool);
  const full = `mcp__${identity.server}__${identity.tool}`;
  if (full.length <= maxName) return full;
  const room = maxName - "mcp____".length;
  const serverPart = shorten(
    identity.server,
    room - Math.min(identity.tool.length, shortestToolPart),
    server,
  );
  return `mcp__${serverPart}__${shorten(identity.tool, room - serverPart.length, `${server}\0${tool}`)}`;
}

/** The pair that permission rules are compared with: as in the name of the tool, but never shortened. */
export function mcpIdentity(server: string, tool: string): McpIdentity {
  return { server: mcpServerPart(server), tool: mcpToolPart(tool) };
}

function shorten(part: string, room: number, whole: string): string {
  return part.length <= room
    ? part
    : `${part.slice(0, room - digestLength - 1)}_${createHash("sha256").update(whole).digest("hex").slice(0, digestLength)}`;
}
