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
import { createFieldTaker, type FieldTaker, readWords, reportRest } from "../field-reader.ts";
import { holdRestrictions } from "../hold-restrictions.ts";
import type { AgentFormat, PortableAgent, PortableTool } from "../portable-agent.ts";
import { readFenced } from "../read-fenced.ts";
import { createToolWords, doubleUnderscore } from "../tool-words.ts";
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
    const taker = createFieldTaker(fields.values, context, fields.locate);
    const servers = taker.servers("mcpServers");
    const written: PortableAgent = {
      ...emptyAgent("factory", context.file),
      id: needsText(taker, "name", "factory"),
      description: taker.text("description") ?? "",
      prompt: fields.body,
      model: modelOf(taker.text("model"), "factory"),
      effort: taker.text("reasoningEffort"),
      tools: toolsOf(taker, fields.values.get("tools")),
      // A droid starts no others, whatever its file says.
      deny: [
        { class: "subagent", raw: "Task" },
        ...(servers?.length === 0 ? [{ class: "mcp", raw: "mcpServers" } as const] : []),
      ],
      ...(servers === undefined || servers.length === 0 ? {} : { mcp: servers }),
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
    const named = allowedWords(agent, "factory", words);
    const cut =
      agent.description.length > descriptionAtMost
        ? `${agent.description.slice(0, descriptionAtMost - 1).trimEnd()}…`
        : agent.description;
    const noServers = agent.deny.some(
      (tool) => tool.class === "mcp" && tool.server === undefined && tool.tool === undefined,
    );
    const onlyServers = agent.deny.length === 1 && noServers && agent.tools === "all";
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
        ["tools", onlyServers ? undefined : named?.filter((word) => word !== "TodoWrite")],
        ["mcpServers", noServers ? [] : agent.mcp?.map(({ name }) => name)],
        ...restOf(agent, "factory"),
      ],
      agent.prompt,
      note,
    );
  },
  fileName: ({ id }) => `${slug(id)}.md`,
};

function toolsOf(taker: FieldTaker, written: unknown): "all" | readonly PortableTool[] {
  const word = typeof written === "string" ? written.trim() : undefined;
  const category = word === undefined ? undefined : categories.get(word);
  const entries = taker.entries("tools");
  if (entries === undefined) return "all";
  const always: PortableTool = { class: "todo", raw: "TodoWrite" };
  if (word === "mcp") return [{ class: "mcp", raw: "mcp" }, always];
  const read = readWords(category ?? entries, words, { taker, key: "tools", product: "Factory" });
  return read.some(({ class: kind }) => kind === "todo") ? read : [...read, always];
}
