import type { ApprovalAnswer, Approver } from "../permissions/approver.ts";
import type { AskedServer } from "../settings/judge-mcp-entry.ts";
import type { McpAnswer } from "./gather-mcp-servers.ts";

/** Puts the question about a project's server to whoever answers for tools; they see the definition before expansion. */
export function createAskMcpServer(
  approver: Approver,
  signal: AbortSignal,
): (server: AskedServer) => Promise<McpAnswer> {
  return async ({ entry, reason }) => {
    const { config, file } = entry;
    const answer = await approver.approve(
      {
        path: [{ id: "main", name: "main" }],
        callId: `mcp-server:${config.name}`,
        tool: "McpServer",
        input: {
          name: config.name,
          definition: config.written,
          ...(file === undefined ? {} : { file }),
        },
        reason: `The project wants to ${startWords(config.kind)} the MCP server ${config.name}: ${reason}.`,
        suggestedRules: [],
      },
      { signal },
    );
    return meaningOf(answer);
  };
}

function startWords(kind: string | undefined): string {
  return kind === "stdio" ? "start" : "connect to";
}

function meaningOf(answer: ApprovalAnswer): McpAnswer {
  if (answer.type !== "allow") return "no";
  return answer.for === "save" ? "remember" : "for this session";
}
