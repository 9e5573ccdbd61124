import type { ToolName } from "@retinue/base/foundation/tool-table.ts";
import { estimateRequestTokens, estimateTextTokens } from "../conversation/estimate-request-tokens.ts";
import { type Message, type ToolReferenceBlock, toolCallsOf } from "../conversation/message.ts";
import type { ToolSpecification } from "../models/model.ts";
import * as t from "./input-type.ts";
import { foundSpecificationOf, shared, specificationOf } from "./json-schema-of.ts";
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

  const tool: Tool<t.Infer<typeof searchInput>> = {
    name: toolSearchName,
    description: describe(deferred),
    effect: "read",
    origin: "builtin",
    findsTools: true,
    input: searchInput,
    async call({ query, max_results: limit }) {
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
    tool: tool as Tool,
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

/** More in one answer would be what the search is there to avoid. */
const maxFound = 20;

const searchInput = t.object({
  query: t
    .string()
    .min(1)
    .max(2_000)
    .describe("Words for what the tool should do, or select:NAME,NAME for tools whose names you know."),
  max_results: t.coerce.number().int().min(1).max(maxFound).default(5).describe("The most tools to load."),
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

interface ToolQuery {
  readonly query: string;
  /** The most tools that are found by words; tools that are named are all found. */
  readonly limit: number;
}

/**
 * The tools that a query means, the best first: `select:A,B` names them, `+word` must be in a tool's name or the name of its
 * server, and all other words count by where they are found and how rare they are. Equal ones keep their order.
 */
export function searchTools(tools: readonly Tool[], { query, limit }: ToolQuery): readonly Tool[] {
  const named = /^\s*select:(.*)$/is.exec(query)?.[1];
  if (named !== undefined) {
    // By the whole name, or by what the server calls the tool.
    const names = named.split(",").map((name) => name.trim().toLowerCase());
    const found = names.flatMap((name) => {
      const exact = tools.filter((tool) => tool.name.toLowerCase() === name);
      return exact.length > 0 ? exact : tools.filter(({ mcp }) => mcp?.tool.toLowerCase() === name);
    });
    return [...new Set(found)];
  }
  const whole = tools.filter(({ name }) => name.toLowerCase() === query.trim().toLowerCase());
  if (whole.length > 0) return whole;
  const parts = query.split(/\s+/).filter((part) => part !== "");
  const required = parts.filter((part) => part.startsWith("+")).flatMap(wordsOf);
  const words = [...new Set([...required, ...parts.flatMap(wordsOf)])];
  const texts = tools.map(searchable);
  const rarity = new Map(words.map((word) => [word, rarityOf(word, texts)]));
  return texts
    .map((text) => ({
      tool: text.tool,
      score: required.every((word) => inName(word, text) > 0)
        ? words.reduce((sum, word) => sum + weightOf(word, text) * (rarity.get(word) ?? 0), 0)
        : 0,
    }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, limit)
    .map(({ tool }) => tool);
}

interface Searchable {
  readonly tool: Tool;
  readonly name: readonly string[];
  readonly server: readonly string[];
  readonly parameters: readonly string[];
  readonly description: ReadonlySet<string>;
}

const known = new WeakMap<Tool, Searchable>();

/** Made once: a tool never changes. */
function searchable(tool: Tool): Searchable {
  const made = known.get(tool);
  if (made !== undefined) return made;
  const { mcp, name, description, inputSchema } = tool;
  const properties = inputSchema?.["properties"];
  const text: Searchable = {
    tool,
    name: wordsOf(mcp?.tool ?? name),
    server: wordsOf(mcp?.serverName ?? ""),
    parameters: typeof properties === "object" ? Object.keys(properties ?? {}).flatMap(wordsOf) : [],
    description: new Set(wordsOf(description)),
  };
  known.set(tool, text);
  return text;
}

/** `listOpenIssues`, `list_open_issues` and `list open issues` are the same words. */
function wordsOf(text: string): readonly string[] {
  return text
    .replace(/(\p{Ll}|\d)(\p{Lu})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "" && !emptyWords.has(word));
}

const emptyWords: ReadonlySet<string> = new Set("a an and for from in mcp of on or the to with".split(" "));

function weightOf(word: string, text: Searchable): number {
  const described = text.description.has(word) || text.description.has(otherNumber(word)) ? 2 : 0;
  return inName(word, text) + described + (text.parameters.includes(word) ? 1 : 0);
}

function inName(word: string, { name, server }: Searchable): number {
  if (name.includes(word) || name.includes(otherNumber(word))) return 8;
  if (server.includes(word)) return 5;
  return word.length > 2 && name.some((part) => part.startsWith(word)) ? 4 : 0;
}

/** People and servers differ in the plural. */
function otherNumber(word: string): string {
  return word.endsWith("s") ? word.slice(0, -1) : `${word}s`;
}

/** What every tool has says little about any. */
function rarityOf(word: string, texts: readonly Searchable[]): number {
  const having = texts.filter((text) => weightOf(word, text) > 0).length;
  return having === 0 ? 0 : Math.log(1 + texts.length / having);
}
