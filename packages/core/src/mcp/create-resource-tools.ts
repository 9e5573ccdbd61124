import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { mcpIdentity } from "@retinue/config/mcp/mcp-tool-name.ts";
import type { McpIdentity } from "@retinue/gate/call-facts.ts";
import { declared } from "../tools/builtin/builtin-tool.ts";
import * as t from "../tools/input-type.ts";
import type { Tool, ToolContext, ToolOutcome } from "../tools/tool.ts";
import type { ServerLink } from "./connect-again.ts";
import { boundedText } from "./listed-tool.ts";
import { readResourceResult } from "./result-parts.ts";
import { writeResult } from "./write-result.ts";

export interface ResourceOptions {
  readonly maxResultCharacters: number;
}

/** The tools to list and read what servers offer as resources; none when no server has any. */
export function createResourceTools(links: readonly ServerLink[], options: ResourceOptions): readonly Tool[] {
  if (!links.some((link) => link.hasResources())) return [];
  // Inputs are checked by the schemas before `call` sees them, so the wider type is safe to hand out.
  return [listTool(links, options) as Tool, readTool(links, options) as Tool];
}

const listInput = t.object({
  server: t.string().optional().describe("The server to ask; absent means all that have resources."),
});

function listTool(links: readonly ServerLink[], options: ResourceOptions): Tool<t.Infer<typeof listInput>> {
  return {
    name: "ListMcpResourcesTool",
    description:
      "Lists what connected MCP servers offer for reading: for each resource its server, URI, name and type.",
    ...declared("ListMcpResourcesTool"),
    origin: "mcp",
    input: listInput,
    mcpOf: ({ server }) => identityOf(server, "ListMcpResourcesTool"),
    async call({ server }, context) {
      const asked =
        server === undefined ? links.filter((link) => link.hasResources()) : [find(links, server)];
      if (asked.includes(undefined)) return unknownServer(server, links);
      const answers = await Promise.all(
        asked.map((link) => (link === undefined ? [] : listOf(link, context))),
      );
      const lines = answers.flat();
      const text = lines.length === 0 ? "There are no resources." : lines.join("\n");
      const { content } = await writeResult([{ type: "text", text }], options.maxResultCharacters, context);
      return { content };
    },
  };
}

async function listOf(link: ServerLink, { signal }: ToolContext): Promise<readonly string[]> {
  const end = await link.list("resources/list", "resources", { signal });
  if (end.type !== "answered") return [end.reason];
  const resources = Array.isArray(end.result) ? end.result.filter(isRecord) : [];
  return resources.map((resource) => JSON.stringify({ server: link.server.name, ...describe(resource) }));
}

function describe(resource: JsonRecord): JsonRecord {
  const texts = ["uri", "name", "title", "mimeType", "description"].flatMap((key) => {
    const text = resource[key];
    return typeof text === "string" ? [[key, escapeControlTags(boundedText(text, 500))] as const] : [];
  });
  return Object.fromEntries(texts);
}

const readInput = t.object({
  server: t.string().describe("The server that has the resource."),
  uri: t.string().describe("The URI of the resource, as it was listed or linked."),
});

function readTool(links: readonly ServerLink[], options: ResourceOptions): Tool<t.Infer<typeof readInput>> {
  return {
    name: "ReadMcpResourceTool",
    description: "Reads one resource of a connected MCP server.",
    ...declared("ReadMcpResourceTool"),
    origin: "mcp",
    input: readInput,
    mcpOf: ({ server }) => identityOf(server, "ReadMcpResourceTool"),
    async call({ server, uri }, context) {
      const link = find(links, server);
      if (link === undefined) return unknownServer(server, links);
      const end = await link.request("resources/read", { uri }, { signal: context.signal });
      if (end.type !== "answered") return { content: end.reason, isError: true };
      const parts = readResourceResult(end.result);
      const { content, files } = await writeResult(parts, options.maxResultCharacters, context);
      return { content, data: { server, uri, ...(files.length === 0 ? {} : { files }) } };
    },
  };
}

/** A rule about the whole server applies to its resources too. */
function identityOf(server: string | undefined, tool: string): McpIdentity | undefined {
  return server === undefined ? undefined : mcpIdentity(server, tool);
}

function find(links: readonly ServerLink[], name: string): ServerLink | undefined {
  return links.find(({ server }) => server.name === name);
}

function unknownServer(name: string | undefined, links: readonly ServerLink[]): ToolOutcome {
  const known = links.map(({ server }) => server.name).join(", ");
  return {
    content: `There is no MCP server ${JSON.stringify(name)} here. Connected: ${known}.`,
    isError: true,
  };
}

/** Tools over the resources of one group of servers. */
interface ResourceGroup {
  readonly servers: ReadonlySet<string>;
  readonly tools: readonly Tool[];
}

/** One pair of tools over several groups of servers, as names of tools must not come twice. */
export function joinResourceTools(groups: readonly ResourceGroup[]): readonly Tool[] {
  const [first, ...others] = groups.filter(({ tools }) => tools.length > 0);
  if (first === undefined || others.length === 0) return first?.tools ?? [];
  return first.tools.map((tool): Tool => {
    const parts = [first, ...others].flatMap(({ servers, tools }) => {
      const same = tools.find(({ name }) => name === tool.name);
      return same === undefined ? [] : [{ servers, tool: same }];
    });
    return {
      ...tool,
      async call(input, context) {
        const server = isRecord(input) ? input["server"] : undefined;
        const owner = parts.find(({ servers }) => typeof server === "string" && servers.has(server));
        if (owner !== undefined) return owner.tool.call(input, context);
        return server === undefined ? all(parts, input, context) : tool.call(input, context);
      },
    };
  });
}

async function all(
  parts: readonly { readonly tool: Tool }[],
  input: unknown,
  context: ToolContext,
): Promise<ToolOutcome> {
  const outcomes = await Promise.all(parts.map(({ tool }) => tool.call(input, context)));
  const content = outcomes.flatMap((outcome) =>
    typeof outcome.content === "string"
      ? [{ type: "text" as const, text: outcome.content }]
      : outcome.content,
  );
  return { content, ...(outcomes.some(({ isError }) => isError === true) ? { isError: true } : {}) };
}
