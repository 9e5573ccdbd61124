import {
  allowedWords,
  baseName,
  emptyAgent,
  fileStem,
  modelOf,
  modelWord,
  oneAgent,
  refusedReading,
  restOf,
  withListedServers,
} from "../common-fields.ts";
import { createForeignFields, readWords, reportRest } from "../field-reader.ts";
import { holdRestrictions } from "../hold-restrictions.ts";
import type { AgentFormat, PortableAgent, PortableTool } from "../portable-agent.ts";
import { readFenced } from "../read-fenced.ts";
import { createToolWords, plainClasses, slashed } from "../tool-words.ts";
import { writeFenced } from "../write-fenced.ts";

/** Aliases are coarse: `edit` creates and changes, `search` finds and searches. */
const words = createToolWords({
  words: `
    read: read
    edit: create change notebook
    execute: shell
    search: find search list
    web: fetch websearch
    agent: subagent
    todo: todo
    ask_user: ask
    skill: skill`,
  alsoReads: `
    shell: shell
    Bash: shell
    powershell: shell
    NotebookRead: read
    MultiEdit: create change notebook
    Write: create change notebook
    NotebookEdit: create change notebook
    Grep: find search list
    Glob: find search list
    custom-agent: subagent
    Task: subagent
    WebSearch: fetch websearch
    WebFetch: fetch websearch
    web_fetch: fetch
    TodoWrite: todo
    todos: todo
    view: read
    create: create
    apply_patch: create change
    read/readFile: read
    edit/createFile: create
    edit/editFiles: change
    edit/editNotebook: notebook
    execute/runInTerminal: shell
    search/fileSearch: find
    search/textSearch: search
    search/listDirectory: list
    search/codebase: search
    search/usages: search
    web/fetch: fetch
    agent/runSubagent: subagent
    codebase: search
    usages: search
    fetch: fetch
    web_search: websearch
    editFiles: create change notebook
    runCommands: shell
    runInTerminal: shell
    runSubagent: subagent
    vscode/askQuestions: ask`,
  ignoresCase: true,
  // A set of tools of VS Code is no server.
  readServer: (word) =>
    /^(?:agent|edit|execute|read|search|todo|vscode|web)\//i.test(word)
      ? undefined
      : slashed.readServer(word),
  writeServer: slashed.writeServer,
});

/** GitHub Copilot's cloud agent and command line, and VS Code. */
export const copilotFormat: AgentFormat = {
  id: "copilot",
  promptAtMost: 30_000,
  read(text, context) {
    const fields = readFenced(text, context);
    if ("refused" in fields) return refusedReading(fields);
    const taker = createForeignFields(fields.values, context, fields.locate);
    const entries = taker.entries("tools");
    const isAll = entries === undefined || entries.includes("*");
    const agents = taker.names("agents");
    const tools = isAll ? "all" : readWords(entries, words, { taker, key: "tools", product: "Copilot" });
    const model = taker.take("model");
    const first = Array.isArray(model) ? model.find((each) => typeof each === "string") : model;
    const written: PortableAgent = {
      ...emptyAgent("copilot", context.file),
      id: baseName(context.relative, /(?:\.agent|\.chatmode)?\.md$/i),
      displayName: taker.text("name"),
      description: taker.text("description") ?? "",
      prompt: fields.body,
      model: modelOf(typeof first === "string" ? first.trim() : undefined, "copilot"),
      ...limitedAgents(tools, agents),
      mcp: taker.servers("mcp-servers"),
      rest: {},
    };
    const agent = holdRestrictions(written, taker, {
      product: "Copilot",
      keys: ["disallowedTools", "permissionMode"],
    });
    if (agent.description === "")
      taker.report(
        "warning",
        "no-description",
        "There is no `description`, which GitHub needs.",
        "description",
      );
    if (fields.body.length > 30_000)
      taker.loses(
        "prompt-too-long",
        "The prompt is longer than the 30,000 characters that Copilot takes.",
        "name",
      );
    if (taker.has("hooks")) {
      taker.take("hooks");
      taker.loses("hooks-dropped", "`hooks` of VS Code are not run here.", "hooks");
    }
    reportRest(taker, "Copilot");
    return oneAgent(
      { ...withListedServers(agent, taker, "mcp-servers"), rest: taker.rest() },
      { fields, taker, places: { mcpServers: "mcp-servers" } },
    );
  },
  write(agent, note) {
    const list = allowedWords(agent, "copilot", words);
    const names = agent.tools === "all" ? undefined : namesOf(agent.tools);
    return writeFenced(
      [
        ["name", agent.displayName],
        ["description", agent.description],
        ["tools", list],
        ["model", modelWord(agent, "copilot")],
        ["agents", names],
        ["mcp-servers", inlineServers(agent)],
        ...restOf(agent, "copilot"),
      ],
      agent.prompt,
      note,
    );
  },
  fileName: (agent) => `${fileStem(agent)}.agent.md`,
};

/** `agents` says which agents may be started, and nothing without the tool for it. */
function limitedAgents(
  tools: PortableAgent["tools"],
  agents: readonly string[] | undefined,
): Pick<PortableAgent, "tools" | "deny"> {
  if (agents === undefined || agents.includes("*")) return { tools, deny: [] };
  const spawn = (pattern?: string): PortableTool => ({
    class: "subagent",
    raw: "agent",
    pattern,
  });
  if (agents.length === 0) return { tools, deny: [spawn()] };
  const whole: readonly PortableTool[] =
    tools === "all"
      ? [
          ...plainClasses.map((kind): PortableTool => ({ class: kind, raw: kind })),
          { class: "mcp", raw: "*" },
        ]
      : tools;
  return {
    tools: whole.flatMap((tool) => (tool.class === "subagent" ? [spawn(agents.join(", "))] : [tool])),
    deny: [],
  };
}

function namesOf(tools: readonly PortableTool[]): readonly string[] | undefined {
  const patterns = tools.flatMap((tool) =>
    tool.class === "subagent" && tool.pattern !== undefined ? [tool.pattern] : [],
  );
  return patterns.length === 0
    ? undefined
    : patterns.flatMap((pattern) => pattern.split(",").map((name) => name.trim()));
}

export function inlineServers({ mcp = [] }: PortableAgent): Readonly<Record<string, unknown>> | undefined {
  const own = mcp.flatMap((server) =>
    server.type === "inline" ? [[server.name, server.config] as const] : [],
  );
  return own.length === 0 ? undefined : Object.fromEntries(own);
}
