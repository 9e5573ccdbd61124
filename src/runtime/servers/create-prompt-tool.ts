import { isRecord } from "../../foundation/json-record.ts";
import { RetinueError } from "../../foundation/retinue-error.ts";
import type { Tool } from "../../tools/tool.ts";
import type { CanUseTool } from "../agent/create-authorize.ts";
import type { SessionServers } from "./session-servers.ts";

/** Asks a tool of an MCP server, in a person's place, about calls that rules leave open. What it does not allow is refused. */
export function createPromptTool(name: string, servers: Promise<SessionServers>): CanUseTool {
  return async (tool_name, input, { signal, callId }) => {
    const { tools, call } = await servers;
    const mcp = findPromptTool(name, tools)?.mcp;
    if (mcp === undefined) return { behavior: "deny", message: `there is no tool ${name} to ask` };
    const question = { tool_name, input, tool_use_id: callId };
    const { text, isError } = await call(mcp.serverName, mcp.tool, question, { signal });
    if (isError) return { behavior: "deny", message: `${name} failed: ${text}` };
    return readAnswer(name, text);
  };
}

export function refuseMissingPromptTool(name: string | undefined, tools: readonly Tool[]): void {
  if (name === undefined || findPromptTool(name, tools) !== undefined) return;
  const known = tools.map((tool) => tool.name).join(", ");
  throw new RetinueError(
    "unusable-tools",
    `There is no MCP tool ${JSON.stringify(name)} that could be asked.`,
    {
      advice:
        known === ""
          ? "Name a tool as mcp__server__tool, and see with `retinue mcp list --check` whether its server answers."
          : `The tools of the connected servers are ${known}.`,
    },
  );
}

function findPromptTool(name: string, tools: readonly Tool[]): Tool | undefined {
  return tools.find((tool) => tool.name === name && tool.mcp !== undefined);
}

function readAnswer(name: string, text: string): Awaited<ReturnType<CanUseTool>> {
  const answer = parse(text);
  const { behavior, updatedInput, message } = isRecord(answer) ? answer : {};
  if (behavior === "allow") {
    return { behavior, ...(isRecord(updatedInput) ? { updatedInput } : {}) };
  }
  if (behavior === "deny") return { behavior, ...(typeof message === "string" ? { message } : {}) };
  return { behavior: "deny", message: `${name} answered neither "allow" nor "deny"` };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
