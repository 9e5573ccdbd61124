import {
  allowedWords,
  emptyAgent,
  modelOf,
  modelWord,
  needsText,
  oneAgent,
  refusedReading,
  restOf,
  slug,
} from "../common-fields.ts";
import { createForeignFields, type ForeignFields, readWords, reportRest } from "../field-reader.ts";
import { holdRestrictions } from "../hold-restrictions.ts";
import type { AgentFormat, PortableAgent, PortableTool, ToolClass } from "../portable-agent.ts";
import { readFenced } from "../read-fenced.ts";
import { createToolWords, doubleUnderscore, plainClasses } from "../tool-words.ts";
import { writeFenced } from "../write-fenced.ts";

const words = createToolWords({
  words: `
    Read: read
    LS: list
    Grep: search
    Glob: find
    Create: create
    Edit: change
    Execute: shell
    WebSearch: websearch
    FetchUrl: fetch
    TodoWrite: todo`,
  alsoReads: "ApplyPatch: create change",
  readServer: doubleUnderscore.readServer,
  // Only whole ids of tools are known; a whole server is not a word here.
  writeServer: ({ server, tool }) =>
    server === undefined || tool === undefined ? undefined : `mcp__${server}__${tool}`,
});

const categories: ReadonlyMap<string, readonly string[]> = new Map([
  ["read-only", ["Read", "LS", "Grep", "Glob"]],
  ["edit", ["Create", "Edit", "ApplyPatch"]],
  ["execute", ["Execute"]],
  ["web", ["WebSearch", "FetchUrl"]],
]);

const descriptionAtMost = 500;

/** Factory's droids. The list of steps is always there. */
export const factoryFormat: AgentFormat = {
  id: "factory",
  read(text, context) {
    const fields = readFenced(text, context);
    if ("refused" in fields) return refusedReading(fields);
    const taker = createForeignFields(fields.values, context, fields.locate);
    const servers = serversOf(taker);
    const written: PortableAgent = {
      ...emptyAgent("factory", context.file),
      id: needsText(taker, "name", "factory"),
      description: taker.text("description") ?? "",
      prompt: fields.body,
      model: modelOf(taker.text("model"), "factory"),
      effort: taker.text("reasoningEffort"),
      tools: ofServers(toolsOf(taker, fields.values.get("tools")), servers),
      // A droid starts no others, whatever is in its file.
      deny: [
        { class: "subagent", raw: "Task" },
        ...(servers?.length === 0 ? [{ class: "mcp", raw: "mcpServers" } as const] : []),
      ],
      rest: {},
    };
    const agent = holdRestrictions(written, taker, {
      product: "Factory",
      keys: ["disallowedTools", "permissionMode"],
    });
    reportRest(taker, "Factory");
    return oneAgent(
      { ...agent, rest: taker.rest() },
      { fields, taker, places: { effort: "reasoningEffort", disallowedTools: "mcpServers" } },
    );
  },
  write(given, note) {
    const agent = { ...given, deny: given.deny.filter((tool) => tool.class !== "subagent") };
    const list = allowedWords(agent, "factory", words);
    const cut =
      agent.description.length > descriptionAtMost
        ? `${agent.description.slice(0, descriptionAtMost - 1).trimEnd()}…`
        : agent.description;
    const noServers = agent.deny.some(
      (tool) => tool.class === "mcp" && tool.server === undefined && tool.tool === undefined,
    );
    const onlyServers = agent.deny.length === 1 && noServers && agent.tools === "all";
    const named = serversOfAll(agent);
    return writeFenced(
      [
        ["name", slug(agent.id)],
        ["description", cut === "" ? undefined : cut],
        ["model", modelWord(agent, "factory")],
        [
          "reasoningEffort",
          agent.effort !== undefined && ["low", "medium", "high"].includes(agent.effort)
            ? agent.effort
            : undefined,
        ],
        [
          "tools",
          onlyServers || named !== undefined ? undefined : list?.filter((word) => word !== "TodoWrite"),
        ],
        ["mcpServers", noServers ? [] : named],
        ...restOf(agent, "factory"),
      ],
      agent.prompt,
      note,
    );
  },
  fileName: ({ id }) => `${slug(id)}.md`,
};

/** Where an agent has every tool and some servers whole: which. */
function serversOfAll({ tools, deny }: PortableAgent): readonly string[] | undefined {
  if (tools === "all" || deny.length > 0) return undefined;
  const isWhole = (kind: ToolClass): boolean =>
    tools.some((tool) => tool.class === kind && tool.pattern === undefined);
  const servers = tools.filter((tool) => tool.class === "mcp");
  const names = servers.flatMap(({ server, tool }) =>
    server === undefined || tool !== undefined ? [] : [server],
  );
  const isAll = plainClasses.every((kind) => kind === "subagent" || isWhole(kind));
  return isAll && names.length > 0 && names.length === servers.length ? names : undefined;
}

/** The servers that are named are all that there are: none of them brings its tools into a list that does not have them. */
function ofServers(
  tools: "all" | readonly PortableTool[],
  names: readonly string[] | undefined,
): "all" | readonly PortableTool[] {
  if (names === undefined || names.length === 0) return tools;
  const servers = names.map((name): PortableTool => ({ class: "mcp", server: name, raw: name }));
  if (tools === "all")
    return [...plainClasses.map((kind): PortableTool => ({ class: kind, raw: kind })), ...servers];
  return tools.flatMap((tool) => {
    if (tool.class !== "mcp") return [tool];
    if (tool.server === undefined) return servers;
    return names.includes(tool.server) ? [tool] : [];
  });
}

/** Names of servers that are configured elsewhere; a configuration here starts nothing in Factory. */
function serversOf(taker: ForeignFields): readonly string[] | undefined {
  if (!taker.has("mcpServers")) return undefined;
  const value = taker.take("mcpServers");
  const names = typeof value === "string" ? value.split(",").map((name) => name.trim()) : value;
  if (Array.isArray(names) && names.every((name) => typeof name === "string"))
    return names.filter((name) => name !== "");
  return taker.fails("mcpServers", "it is not a list of names");
}

function toolsOf(taker: ForeignFields, written: unknown): "all" | readonly PortableTool[] {
  const word = typeof written === "string" ? written.trim() : undefined;
  const category = word === undefined ? undefined : categories.get(word);
  const entries = taker.entries("tools");
  if (entries === undefined) return "all";
  const always: PortableTool = { class: "todo", raw: "TodoWrite" };
  if (word === "mcp") return [{ class: "mcp", raw: "mcp" }, always];
  const read = readWords(category ?? entries, words, { taker, key: "tools", product: "Factory" });
  return read.some(({ class: kind }) => kind === "todo") ? read : [...read, always];
}
