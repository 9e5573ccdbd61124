import type { Place } from "@retinue/base/foundation/diagnostic.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";
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
  withListedServers,
} from "../common-fields.ts";
import { inlineServers } from "../copilot/copilot-format.ts";
import { createForeignFields, readWords, reportRest } from "../field-reader.ts";
import { holdRestrictions } from "../hold-restrictions.ts";
import type { AgentFormat, PortableAgent, PortableReading, ReadContext } from "../portable-agent.ts";
import { readFenced } from "../read-fenced.ts";
import { createToolWords, splitsAtUnderscore } from "../tool-words.ts";
import { writeFenced } from "../write-fenced.ts";

const words = createToolWords({
  words: `
    read_file: read
    write_file: create
    replace: change
    run_shell_command: shell
    glob: find
    grep_search: search
    list_directory: list
    web_fetch: fetch
    google_web_search: websearch
    invoke_agent: subagent
    write_todos: todo
    ask_user: ask
    activate_skill: skill`,
  alsoReads: `
    read_many_files: read
    search_file_content: search`,
  readServer(word) {
    if (word === "mcp_*") return [{}];
    // A star means all tools of a server, and nothing else.
    const isName = word.startsWith("mcp_") && !word.replace(/_\*$/, "").includes("*");
    const servers = isName ? splitsAtUnderscore(word.slice("mcp_".length)) : [];
    return servers.length === 0 ? undefined : servers;
  },
  writeServer({ server, tool }) {
    if (server !== undefined) return `mcp_${server}_${tool ?? "*"}`;
    return tool === undefined ? "mcp_*" : undefined;
  },
});

/** Only of remote agents a file can hold several. */
const listOfAgents = /^\uFEFF?---[ \t]*\r?\n(?:[ \t]*(?:#.*)?\r?\n)*- /;

function remoteAgents({ file }: ReadContext, place: Place | undefined): PortableReading {
  const message = "A remote agent of Gemini CLI cannot be started here; the file is left out.";
  return {
    agents: [],
    diagnostics: [{ severity: "warning", code: "remote-agent", message, file, ...place }],
  };
}

/** Gemini CLI: strict about keys and names; a file that it would refuse is read here with a warning. */
export const geminiFormat: AgentFormat = {
  id: "gemini",
  read(text, context) {
    if (listOfAgents.test(text)) return remoteAgents(context, { line: 2, column: 1 });
    const fields = readFenced(text, context);
    if ("refused" in fields) return refusedReading(fields);
    const taker = createForeignFields(fields.values, context, fields.locate);
    const kind = taker.text("kind") ?? "local";
    if (kind === "remote") return remoteAgents(context, fields.locate(["kind"]));
    if (kind !== "local")
      taker.report(
        "warning",
        "wrong-form",
        `Gemini CLI refuses this file: it has no kind of agent ${quote(kind)}. It was read as \`local\`.`,
        "kind",
      );
    const id = needsText(taker, "name", "gemini");
    if (typeof fields.values.get("tools") === "string")
      taker.report(
        "warning",
        "wrong-form",
        "Gemini CLI refuses this file: `tools` must be a list. It was read as one.",
        "tools",
      );
    const entries = taker.entries("tools");
    const minutes = taker.number("timeout_mins");
    const written: PortableAgent = {
      ...emptyAgent("gemini", context.file),
      id,
      displayName: taker.text("display_name"),
      description: needsText(taker, "description", "gemini"),
      prompt: fields.body,
      tools:
        entries === undefined || entries.includes("*")
          ? "all"
          : readWords(entries, words, { taker, key: "tools", product: "Gemini CLI" }),
      model: modelOf(taker.text("model"), "gemini"),
      mcp: taker.servers("mcp_servers"),
      limits: { turns: taker.number("max_turns"), seconds: minutes === undefined ? undefined : minutes * 60 },
      rest: {},
    };
    const agent = holdRestrictions(written, taker, {
      product: "Gemini CLI",
      keys: ["disallowedTools", "permissionMode"],
    });
    reportRest(taker, "Gemini CLI");
    return oneAgent(
      { ...withListedServers(agent, taker, "mcp_servers"), rest: taker.rest() },
      { fields, taker, places: { mcpServers: "mcp_servers", maxTurns: "max_turns", limits: "timeout_mins" } },
    );
  },
  write(agent, note) {
    const { seconds, turns } = agent.limits;
    const rest = restOf(agent, "gemini").filter(([key]) => key === "temperature" || key === "kind");
    return writeFenced(
      [
        ["name", slug(agent.id)],
        ["description", agent.description],
        ["display_name", agent.displayName],
        ["tools", allowedWords(agent, "gemini", words)],
        ["model", modelWord(agent, "gemini", /^gemini-/)],
        ["mcp_servers", inlineServers(agent)],
        ["max_turns", turns],
        // Whole minutes; a shorter time is the narrower one.
        ["timeout_mins", seconds === undefined || seconds < 60 ? undefined : Math.floor(seconds / 60)],
        ...rest,
      ],
      agent.prompt,
      note,
    );
  },
  fileName: ({ id }) => `${slug(id)}.md`,
};
