import type { Tool } from "./tool.ts";

export interface ToolQuery {
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
  if (named !== undefined) return selectTools(tools, named);
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

/** By the whole name, or by what the server calls the tool. */
function selectTools(tools: readonly Tool[], list: string): readonly Tool[] {
  const names = list.split(",").map((name) => name.trim().toLowerCase());
  const found = names.flatMap((name) => {
    const exact = tools.filter((tool) => tool.name.toLowerCase() === name);
    return exact.length > 0 ? exact : tools.filter(({ mcp }) => mcp?.tool.toLowerCase() === name);
  });
  return [...new Set(found)];
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
