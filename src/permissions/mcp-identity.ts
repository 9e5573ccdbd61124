import { createHash } from "node:crypto";

/** Which tool of which server a call means. The pair counts, never the joined name. */
export interface McpIdentity {
  readonly server: string;
  readonly tool: string;
  /** The tool's definition is not the one that was approved. */
  readonly isChanged?: boolean;
}

/** A server's part of tool names. Where the name itself holds no `__`, neither does this, so that it ends at the first. */
export function mcpServerPart(server: string): string {
  const plain = spell(server);
  if (plain === server) return server;
  const tidy = plain.replace(/_{2,}/g, "_").replace(/^_|_$/g, "");
  return tidy === "" ? `server_${createHash("sha256").update(server).digest("hex").slice(0, 8)}` : tidy;
}

export function mcpToolPart(tool: string): string {
  return spell(tool);
}

/** A tool as a rule names it, spelled as tools are; its stars stay. */
export function mcpToolPattern(pattern: string): string {
  return pattern.split("*").map(spell).join("*");
}

function spell(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]/gu, "_");
}

export function isMcpTool(tool: string): boolean {
  return tool.startsWith("mcp__");
}

/** Every pair that `mcp__server__tool` can mean; more than one where underscores leave it open. */
export function readMcpName(name: string): readonly McpIdentity[] {
  const text = name.slice("mcp__".length);
  const readings: McpIdentity[] = [];
  for (let at = text.indexOf("__"); at !== -1; at = text.indexOf("__", at + 1)) {
    const server = text.slice(0, at);
    const tool = text.slice(at + 2);
    if (server !== "" && tool !== "") readings.push({ server, tool });
  }
  return readings;
}
