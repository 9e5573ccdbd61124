import { isRecord } from "../foundation/json-value.ts";
import type { McpToolFacts, Tool } from "../tools/tool.ts";
import type { ServerLink } from "./connect-again.ts";
import type { ListedTool } from "./listed-tool.ts";
import { readToolResult } from "./result-parts.ts";
import { mcpIdentity, mcpToolName } from "./tool-name.ts";
import { writeResult } from "./write-result.ts";

export interface McpToolOptions {
  readonly maxResultCharacters: number;
}

/** A server's tool as one that agents can call. Its hints decide what plan mode lets through, and nothing else. */
export function createMcpTool(listed: ListedTool, link: ServerLink, options: McpToolOptions): Tool {
  const serverName = link.server.name;
  const { name, description, inputSchema, hints } = listed;
  const identity = mcpIdentity(serverName, name);
  const readsOnly = hints.readOnly === true;
  return {
    name: mcpToolName(serverName, name),
    description,
    effect: readsOnly ? "read" : "execute",
    origin: "mcp",
    inputSchema,
    isConcurrencySafe: () => readsOnly,
    get mcp(): McpToolFacts {
      const { scope: source } = link.server;
      return {
        ...identity,
        serverName,
        source,
        hints,
        ...(isChanged(listed, link) ? { isChanged: true } : {}),
      };
    },
    async call(input, context) {
      const { signal, progress: onProgress } = context;
      const end = await link.callTool(listed, isRecord(input) ? input : {}, { signal, onProgress });
      if (end.type !== "answered") return { content: end.reason, isError: true };
      const { parts, isError, structured } = readToolResult(end.result);
      const { content, files } = await writeResult(parts, options.maxResultCharacters, context);
      const isSilent = isError && content.length === 0;
      return {
        content: isSilent
          ? `The tool ${identity.tool} of the server ${serverName} failed without saying why.`
          : content,
        ...(isError ? { isError } : {}),
        data: {
          server: serverName,
          tool: name,
          ...(isSmall(structured) ? { structuredContent: structured } : {}),
          ...(files.length === 0 ? {} : { files }),
        },
      };
    },
  };
}

/** Whether the server now describes this tool otherwise than when it was offered; what was allowed was the other one. */
function isChanged(listed: ListedTool, link: ServerLink): boolean {
  const now = link.tools().find(({ name }) => name === listed.name);
  return now !== undefined && now !== listed && !isSameTool(now, listed);
}

export function isSameTool(one: ListedTool, other: ListedTool): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

const largestStructured = 100_000;

/** Transcripts keep the structure besides the text, where it is not huge. */
function isSmall(structured: unknown): boolean {
  return structured !== undefined && JSON.stringify(structured).length <= largestStructured;
}
