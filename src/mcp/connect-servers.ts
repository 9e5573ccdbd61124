import { shown } from "../foundation/json-value.ts";
import { limitText } from "../tools/output-limit.ts";
import type { Tool } from "../tools/tool.ts";
import { connectAgain, type ServerLink } from "./connect-again.ts";
import type { ListedTool } from "./listed-tool.ts";
import type { McpConnectionOptions, McpConnections, McpServerState } from "./mcp-connections.ts";
import type { McpServer } from "./mcp-server.ts";
import { createMcpTool, isSameTool } from "./mcp-tool.ts";
import { createResourceTools } from "./resource-tools.ts";
import { readToolResult } from "./result-parts.ts";
import { runSpaced } from "./run-spaced.ts";
import { mcpServerPart, mcpToolName } from "./tool-name.ts";

/** A server may say as often as it likes that its tools have changed; it is asked for them this often. */
const refreshPauseMs = 1_000;

/** Connects all servers at once, each within its limit; a server that fails is a state, never an error of the others. */
export function connectServers(servers: readonly McpServer[], options: McpConnectionOptions): McpConnections {
  const { notice = () => undefined } = options;
  const { taken, refused } = withoutNamesakes(servers);
  const disposal = new AbortController();
  const links = taken.map((server): ServerLink => {
    const link: ServerLink = connectAgain(server, {
      ...options,
      onListChanged: () => changed(),
      onListed: () => follow(Promise.resolve()),
    });
    const refresh = (): Promise<void> => {
      follow(link.refresh());
      return ready;
    };
    const changed = runSpaced(refresh, { pauseMs: refreshPauseMs, signal: disposal.signal });
    return link;
  });
  const resourceTools = new Map<string, readonly Tool[]>();
  const made = new Map<string, { readonly listed: ListedTool; readonly tool: Tool }>();
  const reported = new Set<string>();
  let tools: readonly Tool[] = [];
  let closing: Promise<void> | undefined;
  let ready: Promise<void> = Promise.all(links.map((link) => link.start())).then(() => {
    tools = collect();
    for (const { server, status } of states()) {
      if (status.type === "failed")
        notice(`The MCP server ${JSON.stringify(server.name)} failed: ${status.reason}.`);
    }
  });

  /** A tool that stays as it was stays the same object, so that prompts do not change with it. */
  function collect(): readonly Tool[] {
    const names = new Set<string>();
    return links.flatMap((link) =>
      link.tools().flatMap((listed): Tool[] => {
        const name = mcpToolName(link.server.name, listed.name);
        if (names.has(name)) {
          reportOnce(
            `The tool ${shown(listed.name)} of the MCP server ${shown(link.server.name)} is left out: another one has the name ${name}.`,
          );
          return [];
        }
        names.add(name);
        const known = made.get(name);
        if (known !== undefined && isSameTool(known.listed, listed)) return [known.tool];
        const tool = createMcpTool(listed, link, options);
        made.set(name, { listed, tool });
        return [tool];
      }),
    );
  }

  function reportOnce(text: string): void {
    if (reported.has(text)) return;
    reported.add(text);
    notice(text);
  }

  function follow(work: Promise<void>): void {
    const before = ready;
    ready = Promise.all([before, work]).then(() => {
      const next = collect();
      if (next.length === tools.length && next.every((tool, at) => tool === tools[at])) return;
      tools = next;
      options.onToolsChanged?.();
    });
  }

  function states(): readonly McpServerState[] {
    return [...links.map((link) => ({ server: link.server, status: link.status() })), ...refused];
  }

  return {
    get ready() {
      return ready;
    },
    tools: () => tools,
    resourceTools(only) {
      const open = links.filter(
        (link) => link.hasResources() && (only === undefined || only.has(link.server.name)),
      );
      const key = JSON.stringify(open.map((link) => link.server.name));
      const known = resourceTools.get(key) ?? createResourceTools(open, options);
      resourceTools.set(key, known);
      return known;
    },
    states,
    async call(server, tool, input, { signal }) {
      const link = links.find((candidate) => candidate.server.name === server);
      if (link === undefined) {
        return { text: `There is no MCP server ${JSON.stringify(server)} here.`, isError: true };
      }
      await ready;
      const listed = link.tools().find(({ name }) => name === tool) ?? unlisted(tool);
      const end = await link.callTool(listed, input, { signal });
      if (end.type !== "answered") return { text: end.reason, isError: true };
      const { parts, isError } = readToolResult(end.result);
      const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
      return { text: limitText(text, options.maxResultCharacters).text, isError };
    },
    [Symbol.asyncDispose]() {
      disposal.abort();
      closing ??= Promise.all(links.map((link) => link.close())).then(() => undefined);
      return closing;
    },
  };
}

function unlisted(name: string): ListedTool {
  return { name, description: "", inputSchema: { type: "object" }, hints: {} };
}

/** Rules and tool names know a server by its spelled name, so two that are spelled alike cannot both be had. */
function withoutNamesakes(servers: readonly McpServer[]): {
  readonly taken: readonly McpServer[];
  readonly refused: readonly McpServerState[];
} {
  const owners = new Map<string, McpServer>();
  const refused: McpServerState[] = [];
  for (const server of servers) {
    const spelled = mcpServerPart(server.name);
    const owner = owners.get(spelled);
    if (owner === undefined) owners.set(spelled, server);
    else {
      const reason = `in the names of tools it reads like the server ${JSON.stringify(owner.name)}`;
      refused.push({ server, status: { type: "failed", reason, advice: "Give one of them another name." } });
    }
  }
  return { taken: [...owners.values()], refused };
}
