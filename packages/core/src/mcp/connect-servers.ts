import { sleep } from "@retinue/base/foundation/abortable.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { mcpIdentity, mcpServerPart, mcpToolName } from "@retinue/config/mcp/mcp-tool-name.ts";
import type { McpServer } from "@retinue/config/mcp/mcp-transport.ts";
import { limitText } from "../tools/limit-text.ts";
import type { McpToolFacts, Tool } from "../tools/tool.ts";
import { connectAgain, type ServerLink } from "./connect-again.ts";
import { createResourceTools } from "./create-resource-tools.ts";
import { boundedText, type ListedTool } from "./listed-tool.ts";
import type { McpConnectionOptions, McpConnections, McpServerState } from "./mcp-connections.ts";
import { readToolResult } from "./result-parts.ts";
import { writeResult } from "./write-result.ts";

/** A server may say as often as it likes that its tools have changed; it is asked for them this often. */
const refreshPauseMs = 1_000;

/** Connects all servers at the same time, each within its limit; a server that fails is a state, never an error of the others. */
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
  const collect = createCollector(links, options);
  let tools: readonly Tool[] = [];
  let closing: Promise<void> | undefined;
  let ready: Promise<void> = Promise.all(links.map(startRetrying)).then(() => {
    tools = collect();
    for (const state of states()) {
      const { server, status } = state;
      if (status.type === "failed")
        notice(
          `The MCP server ${JSON.stringify(server.name)} failed: ${status.reason}.${status.needsAuth === true && status.advice !== undefined ? ` ${status.advice}` : ""}`,
        );
    }
  });

  async function startRetrying(link: ServerLink): Promise<void> {
    const started = link.start();
    const timeoutMs = options.timeoutMs?.(link.server);
    if (timeoutMs === undefined || timeoutMs >= options.startLimitMs) return started;
    const { promise: over, resolve } = Promise.withResolvers<"late">();
    const timer = setTimeout(() => resolve("late"), timeoutMs);
    const first = await Promise.race([started, over]).finally(() => clearTimeout(timer));
    if (first !== "late") return;
    const name = JSON.stringify(link.server.name);
    notice(`The MCP server ${name} has not answered within ${timeoutMs / 1000} s; continuing without it.`);
    void started.then(() => follow(Promise.resolve()));
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
    resourceTools: rememberResourceTools(links, options),
    states,
    async call(server, tool, input, { signal }) {
      const link = links.find((candidate) => candidate.server.name === server);
      if (link === undefined) return noServer(server);
      await ready;
      const maxCharacters = options.maxResultCharacters;
      const listed = link.tools().find(({ name }) => name === tool) ?? {
        name: tool,
        description: "",
        inputSchema: { type: "object" },
        hints: {},
      };
      const end = await link.callTool(listed, input, { signal });
      if (end.type !== "answered") return { text: end.reason, isError: true };
      const { parts, isError } = readToolResult(end.result);
      const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
      return { text: limitText(text, maxCharacters).text, isError };
    },
    ...programRequests(links, () => ready),
    [Symbol.asyncDispose]() {
      disposal.abort();
      closing ??= Promise.all(links.map((link) => link.close())).then(() => undefined);
      return closing;
    },
  };
}

/** Lists the tools of all servers. One that stays as it was stays the same object, so that prompts do not change with it. */
function createCollector(links: readonly ServerLink[], options: McpConnectionOptions): () => readonly Tool[] {
  const { notice = () => undefined } = options;
  const made = new Map<string, { readonly listed: ListedTool; readonly tool: Tool }>();
  const reported = new Set<string>();

  function reportOnce(text: string): void {
    if (reported.has(text)) return;
    reported.add(text);
    notice(text);
  }

  return () => {
    const names = new Set<string>();
    return links.flatMap((link) =>
      link.tools().flatMap((listed): Tool[] => {
        const name = mcpToolName(link.server.name, listed.name);
        if (names.has(name)) {
          reportOnce(
            `The tool ${quote(listed.name)} of the MCP server ${quote(link.server.name)} is left out: another one has the name ${name}.`,
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
  };
}

/** The same tools for the same servers, so that prompts do not change. */
function rememberResourceTools(
  links: readonly ServerLink[],
  options: McpConnectionOptions,
): McpConnections["resourceTools"] {
  const made = new Map<string, readonly Tool[]>();
  return (only) => {
    const open = links.filter(
      (link) => link.hasResources() && (only === undefined || only.has(link.server.name)),
    );
    const key = JSON.stringify(open.map((link) => link.server.name));
    const known = made.get(key) ?? createResourceTools(open, options);
    made.set(key, known);
    return known;
  };
}

/** What programs ask of servers directly, beside the calls of agents. */
function programRequests(
  links: readonly ServerLink[],
  ready: () => Promise<void>,
): Pick<McpConnections, "request" | "prompts"> {
  return {
    async request(server, method, parameters, { signal }) {
      const link = links.find((candidate) => candidate.server.name === server);
      if (link === undefined) return { type: "failed", reason: noServer(server).text };
      await ready();
      return link.request(method, parameters, { signal });
    },
    async prompts({ signal }) {
      const offering = links.filter((link) => link.hasPrompts());
      return (
        await Promise.all(
          offering.map(async (link) => {
            const end = await link.list("prompts/list", "prompts", { signal });
            const listed =
              end.type === "answered" && Array.isArray(end.result) ? end.result.filter(isRecord) : [];
            return listed.flatMap(({ name, description, arguments: given }) => {
              if (typeof name !== "string" || name === "") return [];
              const named = Array.isArray(given) ? given.filter(isRecord).map((each) => each["name"]) : [];
              return [
                {
                  server: link.server.name,
                  name,
                  command: mcpToolName(link.server.name, name),
                  description: typeof description === "string" ? boundedText(description, 2_000) : "",
                  arguments: named.filter((each) => typeof each === "string"),
                },
              ];
            });
          }),
        )
      ).flat();
    },
  };
}

function noServer(name: string): { readonly text: string; readonly isError: boolean } {
  return { text: `There is no MCP server ${JSON.stringify(name)} here.`, isError: true };
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
      const reason = `in tool names it cannot be told apart from the server ${JSON.stringify(owner.name)}`;
      refused.push({ server, status: { type: "failed", reason, advice: "Rename one of them." } });
    }
  }
  return { taken: [...owners.values()], refused };
}

/**
 * Runs the work when it is asked for, and once more after a pause where it was asked for meanwhile: one at a time, however
 * often it is asked for. The work must not reject.
 */
export function runSpaced(
  work: () => Promise<void>,
  { pauseMs, signal }: { readonly pauseMs: number; readonly signal: AbortSignal },
): () => void {
  let isWanted = false;
  let isRunning = false;
  async function run(): Promise<void> {
    isRunning = true;
    while (isWanted && !signal.aborted) {
      isWanted = false;
      await work();
      await sleep(pauseMs, signal).catch(() => undefined);
    }
    isRunning = false;
  }
  return () => {
    isWanted = true;
    if (!isRunning) void run();
  };
}

interface McpToolOptions {
  readonly maxResultCharacters: number;
}

/** A server's tool as one that agents can call. Its hints decide what plan mode lets through, and nothing else. */
function createMcpTool(listed: ListedTool, link: ServerLink, options: McpToolOptions): Tool {
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
    isAlwaysLoaded: link.server.alwaysLoad === true || listed.isAlwaysLoaded === true,
    get mcp(): McpToolFacts {
      const { scope: source } = link.server;
      // Whether the server now describes this tool otherwise than when it was offered; what was allowed was the other one.
      const now = link.tools().find(({ name }) => name === listed.name);
      return {
        ...identity,
        serverName,
        source,
        hints,
        ...(now !== undefined && now !== listed && !isSameTool(now, listed) ? { isChanged: true } : {}),
      };
    },
    async call(input, context) {
      const { signal, progress: onProgress, idempotencyKey } = context;
      const traceParent = context.environment["TRACEPARENT"];
      const end = await link.callTool(listed, isRecord(input) ? input : {}, {
        signal,
        onProgress,
        idempotencyKey,
        traceParent,
      });
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
          // Transcripts keep the structure besides the text, where it is not huge.
          ...(structured !== undefined && JSON.stringify(structured).length <= largestStructured
            ? { structuredContent: structured }
            : {}),
          ...(files.length === 0 ? {} : { files }),
        },
      };
    },
  };
}

function isSameTool(one: ListedTool, other: ListedTool): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

const largestStructured = 100_000;
