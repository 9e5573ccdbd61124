import { parseToolEntry, resolveToolName } from "../tools/tool-entry.ts";
import type { PortableTool, ToolClass } from "./portable-agent.ts";

/** What each tool of this product is for. Its table of tools has many more names; the others have no word elsewhere. */
const classOfTool: ReadonlyMap<string, ToolClass> = new Map<string, ToolClass>([
  ["Read", "read"],
  ["Write", "create"],
  ["Edit", "change"],
  ["Bash", "shell"],
  ["Glob", "find"],
  ["Grep", "search"],
  ["WebFetch", "fetch"],
  ["WebSearch", "websearch"],
  ["Agent", "subagent"],
  ["TodoWrite", "todo"],
  ["AskUserQuestion", "ask"],
  ["Skill", "skill"],
  ["NotebookEdit", "notebook"],
]);

const toolOfClass: ReadonlyMap<ToolClass, string> = new Map([
  ...[...classOfTool].map(([name, kind]) => [kind, name] as const),
  ["list", "LS"] as const,
]);

/** The class of one of our own tools; servers' tools are `mcp`, and what has no word elsewhere is `other`. */
export function classOf(name: string): ToolClass {
  return name.startsWith("mcp__") ? "mcp" : (classOfTool.get(name) ?? "other");
}

/** The classes that a list of tools can name one by one. */
export const plainClasses: readonly ToolClass[] = [...classOfTool.values()];

/** An entry as our own definitions write it. Under an old name it is the tool of now: `LS` finds files, as `Glob` does. */
export function readOwnEntry(text: string): PortableTool {
  const entry = parseToolEntry(text);
  const pattern = entry.type === "scoped" ? { pattern: entry.specifier } : {};
  const meaning = resolveToolName(entry.name);
  if (meaning.type === "mcp")
    return { class: "mcp", server: meaning.server, tool: meaning.tool, ...pattern, raw: text };
  const name = meaning.type === "known" || meaning.type === "renamed" ? meaning.name : entry.name;
  return { class: classOfTool.get(name) ?? "other", ...pattern, raw: text };
}

export function writeOwnEntry(tool: PortableTool): string {
  if (tool.class === "other") return tool.raw;
  if (tool.class === "mcp") return ownServerEntry(tool);
  // An old name stays as it is written.
  const name = tool.raw === "LS" ? tool.raw : (toolOfClass.get(tool.class) ?? tool.raw);
  return tool.pattern === undefined ? name : `${name}(${tool.pattern})`;
}

function ownServerEntry({ server, tool }: PortableTool): string {
  if (server === undefined) return tool === undefined ? "mcp__*" : `mcp__*__${tool}`;
  return tool === undefined ? `mcp__${server}` : `mcp__${server}__${tool}`;
}

/** The words of one product. */
export interface ToolWords {
  /** A word and what it is for; some words mean several classes. */
  readonly read: (word: string) => readonly PortableTool[];
  /** The word for a tool; undefined where the product has none, or none for a part of one. */
  readonly write: (tool: PortableTool) => string | undefined;
}

interface WordTable {
  /** `word: class class`, one per line; the first word of a class is the one that is written. */
  readonly words: string;
  /** Words that are read only. */
  readonly alsoReads?: string;
  readonly ignoresCase?: boolean;
  readonly readServer: (word: string) => readonly Pick<PortableTool, "server" | "tool">[] | undefined;
  readonly writeServer: (tool: Pick<PortableTool, "server" | "tool">) => string | undefined;
}

export function createToolWords(table: WordTable): ToolWords {
  const fold = (word: string): string => (table.ignoresCase === true ? word.toLowerCase() : word);
  const written = readTable(table.words);
  const byWord = new Map(
    [...written, ...readTable(table.alsoReads ?? "")].map(([word, classes]) => [fold(word), classes]),
  );
  const byClass = new Map<ToolClass, string>();
  for (const [word, classes] of written)
    for (const each of classes) if (!byClass.has(each)) byClass.set(each, word);
  return {
    read(word) {
      const classes = byWord.get(fold(word));
      if (classes !== undefined) return classes.map((each) => ({ class: each, raw: word }));
      const servers = table.readServer(word);
      if (servers !== undefined) return servers.map((each) => ({ class: "mcp", ...each, raw: word }));
      return [{ class: "other", raw: word }];
    },
    write(tool) {
      if (tool.class === "mcp") return table.writeServer(tool);
      return tool.class === "other" ? undefined : byClass.get(tool.class);
    },
  };
}

function readTable(text: string): (readonly [string, readonly ToolClass[]])[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((line) => {
      const at = line.lastIndexOf(":");
      // The tables of this folder hold nothing but classes behind the colon.
      const classes = line
        .slice(at + 1)
        .trim()
        .split(/\s+/) as ToolClass[];
      return [line.slice(0, at).trim(), classes] as const;
    });
}

/** `mcp__server__tool`, as several products write it. */
export const doubleUnderscore = {
  readServer(word: string) {
    const { type, ...named } = resolveToolName(word);
    if (type !== "mcp" || !word.startsWith("mcp__")) return undefined;
    return [
      {
        server: "server" in named ? named.server : undefined,
        tool: "tool" in named ? named.tool : undefined,
      },
    ];
  },
  writeServer: ({ server, tool }: Pick<PortableTool, "server" | "tool">): string | undefined =>
    ownServerEntry({ class: "mcp", server, tool, raw: "" }),
};

/** No real tool has a longer name, and each part makes one more that it could be. */
const maxParts = 32;

/** Where one underscore divides server and tool, each underscore of the word may be the one. */
export function splitsAtUnderscore(word: string): readonly Pick<PortableTool, "server" | "tool">[] {
  const parts = word.split("_");
  if (parts.length > maxParts) return [];
  return parts.slice(0, -1).flatMap((_, index) => {
    const server = parts.slice(0, index + 1).join("_");
    const tool = parts.slice(index + 1).join("_");
    return server === "" || tool === "" ? [] : [{ server, tool: tool === "*" ? undefined : tool }];
  });
}

/** `server/tool` and `server/*`. */
export const slashed = {
  readServer(word: string) {
    const at = word.lastIndexOf("/");
    if (at < 1 || at === word.length - 1) return undefined;
    const tool = word.slice(at + 1);
    return [{ server: word.slice(0, at), tool: tool === "*" ? undefined : tool }];
  },
  writeServer: ({ server, tool }: Pick<PortableTool, "server" | "tool">): string | undefined =>
    server === undefined ? undefined : `${server}/${tool ?? "*"}`,
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

/** A word that no tool of ours has may be another product's; some calls of it are the same calls. */
export function withOtherWords(tool: PortableTool): readonly PortableTool[] {
  if (tool.class !== "other") return [tool];
  const [, name = tool.raw, pattern = tool.pattern] = /^([^(]+)\((.*)\)$/s.exec(tool.raw.trim()) ?? [];
  return otherWords
    .read(name.trim())
    .map((meant) => (meant.class === "other" ? tool : { ...meant, pattern, raw: tool.raw }));
}
