/** Which tool of which server a call means. The pair counts, never the joined name. */
export interface McpIdentity {
  readonly server: string;
  readonly tool: string;
  /** The tool's definition is not the one that was approved. */
  readonly isChanged?: boolean;
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
