import type { ToolName } from "@retinue/base/foundation/tool-table.ts";
import * as z from "zod";
import { estimateRequestTokens, estimateTextTokens } from "../conversation/estimate-request-tokens.ts";
import { type Message, type ToolReferenceBlock, toolCallsOf } from "../conversation/message.ts";
import type { ToolSpecification } from "../models/model.ts";
import { foundSpecificationOf, shared, specificationOf } from "./json-schema-of.ts";
import { searchTools } from "./search-tools.ts";
import type { Tool } from "./tool.ts";

/** The tools of one agent that its model gets only once it has looked for them. */
export interface ToolSearch {
  /** The tool that finds them. */
  readonly tool: Tool;
  /** What the model sees: what was found comes behind all else, in the order it was found, so that caches hold. */
  present(tools: readonly Tool[], messages: readonly Message[]): readonly ToolSpecification[];
  /** The names of those that were found. */
  loaded(): readonly string[];
}

export const toolSearchName: ToolName & "ToolSearch" = "ToolSearch";

/** Whether tools take more than a part of a window, in percent. */
export function takesMore(
  tools: readonly Tool[],
  { percent, contextWindow }: { readonly percent: number; readonly contextWindow: number },
): boolean {
  const tokens = estimateRequestTokens({ system: [], messages: [], tools: tools.map(specificationOf) });
  return tokens > (contextWindow * percent) / 100;
}

/** `loaded` are those that are there from the start, by name. */
export function createToolSearch(deferred: readonly Tool[], loaded: readonly string[] = []): ToolSearch {
  const names = new Set(deferred.map(({ name }) => name));
  const inherited = loaded.filter((name) => names.has(name));
  const found = new Set<string>();
  const seen = new WeakSet<Message>();

  /** What the conversation names or calls is loaded; so a conversation that is continued has what it had. */
  function follow(messages: readonly Message[]): void {
    for (const message of messages) {
      if (seen.has(message)) continue;
      seen.add(message);
      for (const name of toolNamesIn(message))
        if (names.has(name) && !inherited.includes(name)) found.add(name);
    }
  }

  const tool: Tool = {
    name: toolSearchName,
    description: describe(deferred),
    effect: "read",
    origin: "builtin",
    findsTools: true,
    input: searchInput,
    async call(input) {
      const { query, max_results: limit } = searchInput.parse(input);
      const matches = searchTools(deferred, { query, limit }).slice(0, maxFound);
      const data = { query, matches: matches.map(({ name }) => name), total_deferred_tools: deferred.length };
      if (matches.length === 0) return { content: nothingFound(deferred), data };
      return {
        content: matches.map(({ name }): ToolReferenceBlock => ({ type: "tool_reference", tool_name: name })),
        data,
      };
    },
  };

  return {
    tool,
    present(tools, messages) {
      follow(messages);
      // What is there may be wrapped, and is another object than what was given.
      const there = new Map(tools.flatMap((each) => (names.has(each.name) ? [[each.name, each]] : [])));
      const shown = tools.filter(({ name }) => (name === toolSearchName ? there.size > 0 : !names.has(name)));
      const named = (list: Iterable<string>) => [...list].flatMap((name) => there.get(name) ?? []);
      return shared([
        ...[...shown, ...named(inherited)].map(specificationOf),
        ...named(found).map(foundSpecificationOf),
      ]);
    },
    loaded: () => [...inherited, ...found],
  };
}

/** More at once would be what the search is there to avoid. */
const maxFound = 20;

const searchInput = z.object({
  query: z
    .string()
    .min(1)
    .max(2_000)
    .describe("Words for what the tool should do, or select:NAME,NAME for tools whose names you know."),
  max_results: z.coerce.number().int().min(1).max(maxFound).default(5).describe("The most tools to load."),
});

function toolNamesIn(message: Message): readonly string[] {
  if (message.role === "assistant") return toolCallsOf(message).map(({ name }) => name);
  if (typeof message.content === "string") return [];
  return message.content.flatMap((block) =>
    block.type === "tool_result" && typeof block.content !== "string"
      ? block.content.flatMap((part) => (part.type === "tool_reference" ? [part.tool_name] : []))
      : [],
  );
}

function nothingFound(tools: readonly Tool[]): string {
  const servers = [...serversOf(tools).keys()].join(", ");
  return `No tool matches. Try other words, one word, or the name of a server: ${servers}.`;
}

const introduction = `Loads tools of MCP servers. They are not shown to you until you look for them here; once found, call them like any other tool.
Search with a few words for what you need ("create issue"), with +word for one that must be in a tool's or server's name ("+github issue"), or with "select:NAME,NAME" for names you know. Look here before you say that something cannot be done.`;

/** All names where they fit; else how many tools each server has. */
const maxNameTokens = 2_500;

function describe(tools: readonly Tool[]): string {
  const servers = [...serversOf(tools)];
  const names = servers.map(
    ([server, its]) => `- ${server}: ${its.map(({ mcp, name }) => mcp?.tool ?? name).join(", ")}`,
  );
  const list =
    estimateTextTokens(names.join("\n")) <= maxNameTokens
      ? ["The tools of each server (NAME is mcp__SERVER__TOOL):", ...names]
      : [
          "Servers and how many tools they have:",
          ...servers.map(([server, its]) => `- ${server}: ${its.length}`),
        ];
  return [introduction, "", ...list].join("\n");
}

function serversOf(tools: readonly Tool[]): ReadonlyMap<string, readonly Tool[]> {
  return Map.groupBy(tools, ({ mcp, name }) => mcp?.server ?? name);
}
