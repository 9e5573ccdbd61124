import { readFrontmatter } from "../../agents/read-frontmatter.ts";
import { ownFields, readOwnFile } from "../claude/claude-format.ts";
import type {
  AgentFormat,
  PortableAgent,
  PortableReading,
  PortableTool,
  ReadContext,
} from "../portable-agent.ts";
import { createToolWords, slashed } from "../tool-words.ts";
import { writeFenced } from "../write-text.ts";

/** The shared folder `.agents/agents`; docs/agents-folder.md is its specification. */
export const agentsFormat: AgentFormat = {
  id: "agents",
  read: readShared,
  write: (agent, note) => writeFenced(ownFields(agent, "agents"), agent.prompt, note),
  fileName: ({ id }) => `${id}.md`,
};

/** Words of other products, as the specification has them; the names that are written are those of our own tools. */
const otherWords = createToolWords({
  words: "",
  alsoReads: `
    read_file: read
    read_many_files: read
    view: read
    fs_read: read
    create: create
    write_file: create
    write_to_file: create
    fs_write: create change
    replace: change
    edit_file: change
    replace_in_file: change
    apply_patch: create change
    shell: shell
    execute: shell
    execute_bash: shell
    execute_command: shell
    run_shell_command: shell
    find: find
    list: list
    list_files: find list
    list_directory: list
    search: search
    search_files: search
    grep_search: search
    fetch: fetch
    web_fetch: fetch
    fetch_url: fetch
    web_search: websearch
    google_web_search: websearch
    subagent: subagent
    invoke_agent: subagent
    todo: todo
    todo_write: todo
    todo_list: todo
    write_todos: todo
    ask: ask
    ask_user: ask
    question: ask
    activate_skill: skill
    use_skill: skill
    notebook: notebook
    notebook_edit: notebook`,
  ignoresCase: true,
  ...slashed,
});

function readShared(text: string, context: ReadContext): PortableReading {
  const reading = readOwnFile(text, context, "agents");
  return {
    ...reading,
    agents: reading.agents.map(({ agent, placeOf }) => ({
      placeOf,
      agent: {
        ...agent,
        tools: agent.tools === "all" ? "all" : agent.tools.flatMap(withOtherWords),
        deny: [...agent.deny.flatMap(withOtherWords), ...policyOf(text, agent)],
      },
    })),
  };
}

/** A word that no tool of ours has may be another product's; some calls of it are the same calls. */
function withOtherWords(tool: PortableTool): readonly PortableTool[] {
  if (tool.class !== "other") return [tool];
  const [, name = tool.raw, pattern = tool.pattern] = /^([^(]+)\((.*)\)$/s.exec(tool.raw.trim()) ?? [];
  return otherWords
    .read(name.trim())
    .map((meant) => (meant.class === "other" ? tool : { ...meant, pattern, raw: tool.raw }));
}

/** A policy that forbids commands is another product's word, and it limits: it counts. */
function policyOf(text: string, { deny }: PortableAgent): readonly PortableTool[] {
  if (!text.includes("commandExecutionPolicy")) return [];
  const frontmatter = readFrontmatter(text);
  const policy = frontmatter.fields.get("commandExecutionPolicy")?.value;
  const isOff = policy === "off" || policy === false;
  const isDenied = deny.some((tool) => tool.class === "shell" && tool.pattern === undefined);
  return isOff && !isDenied ? [{ class: "shell", raw: "Bash" }] : [];
}
