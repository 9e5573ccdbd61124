import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import {
  emptyAgent,
  fileStem,
  modelOf,
  modelWord,
  needsText,
  oneAgent,
  refusedReading,
  restOf,
  slug,
  toolsOfServers,
  withListedServers,
} from "../common-fields.ts";
import { inlineServers } from "../copilot/copilot-format.ts";
import { createForeignFields, type ForeignFields, readWords, reportRest } from "../field-reader.ts";
import type { AgentFormat, PortableAgent, PortableMode, PortableTool } from "../portable-agent.ts";
import { readFenced } from "../read-fenced.ts";
import { createToolWords, doubleUnderscore } from "../tool-words.ts";
import { writeFenced } from "../write-fenced.ts";

const words = createToolWords({
  words: `
    read_file: read
    write_file: create
    edit: change
    run_shell_command: shell
    glob: find
    grep_search: search
    list_directory: list
    web_fetch: fetch
    web_search: websearch
    agent: subagent
    todo_write: todo
    ask_user_question: ask
    skill: skill
    notebook_edit: notebook`,
  alsoReads: `
    Shell: shell
    ReadFile: read
    WriteFile: create
    Edit: change
    ListFiles: list
    TodoList: todo
    Grep: search
    Glob: find
    WebFetch: fetch
    WebSearch: websearch
    Agent: subagent
    Skill: skill
    NotebookEdit: notebook
    search_file_content: search
    replace: change
    task: subagent
    read_many_files: read`,
  ...doubleUnderscore,
});

const modes: ReadonlyMap<string, PortableMode | undefined> = new Map([
  ["default", undefined],
  ["bubble", undefined],
  ["plan", "plan"],
  ["auto-edit", "edit"],
  ["yolo", "full"],
]);

const claudeModes: ReadonlyMap<string, PortableMode | undefined> = new Map([
  ["default", undefined],
  ["dontAsk", undefined],
  ["plan", "plan"],
  ["acceptEdits", "edit"],
  ["auto", "edit"],
  ["bypassPermissions", "full"],
]);

/** Qwen Code. Without a mode it edits without asking, so that a mode is always written. */
export const qwenFormat: AgentFormat = {
  id: "qwen",
  promptAtMost: 10_000,
  read(text, context) {
    const fields = readFenced(text, context);
    if ("refused" in fields) return refusedReading(fields);
    const taker = createForeignFields(fields.values, context, fields.locate);
    const read = (key: string) => {
      const entries = taker.entries(key);
      return entries === undefined
        ? undefined
        : readWords(entries, words, { taker, key, product: "Qwen Code" });
    };
    const isAll =
      Array.isArray(fields.values.get("tools")) &&
      (fields.values.get("tools") as readonly unknown[]).includes("*");
    const tools = isAll ? void taker.take("tools") : read("tools");
    const run = taker.take("runConfig");
    const legacy = isRecord(run) ? run : {};
    const turns =
      taker.number("maxTurns") ?? (typeof legacy["max_turns"] === "number" ? legacy["max_turns"] : undefined);
    const minutes = legacy["max_time_minutes"];
    const approval = taker.text("approvalMode");
    const agent: PortableAgent = {
      ...emptyAgent("qwen", context.file),
      id: needsText(taker, "name", "qwen"),
      description: needsText(taker, "description", "qwen"),
      prompt: fields.body,
      tools: tools ?? "all",
      deny: (read("disallowedTools") ?? []).flatMap(someCalls),
      model: modelOf(taker.text("model"), "qwen"),
      mode: modeOf(taker, approval),
      mcp: taker.servers("mcpServers"),
      limits: { turns, seconds: typeof minutes === "number" ? minutes * 60 : undefined },
      color: taker.text("color"),
      background: taker.flag("background"),
      hooks: hooksOf(taker),
      rest: {},
    };
    reportRest(taker, "Qwen Code");
    const rest = { ...(approval === "bubble" ? { approvalMode: approval } : {}), ...taker.rest() };
    return oneAgent(
      { ...withListedServers(agent, taker, "mcpServers"), rest },
      {
        fields,
        taker,
        places: { permissionMode: approval === undefined ? "permissionMode" : "approvalMode" },
      },
    );
  },
  write(agent, note) {
    const { approvalMode, ...rest } = Object.fromEntries(restOf(agent, "qwen"));
    const list = (tools: PortableAgent["deny"]) => [
      ...new Set(tools.flatMap((tool) => words.write(tool) ?? [])),
    ];
    const deny = list(agent.deny.filter(({ pattern }) => pattern === undefined));
    return writeFenced(
      [
        ["name", qwenName(agent.id)],
        ["description", agent.description],
        ["tools", agent.tools === "all" ? undefined : list([...agent.tools, ...toolsOfServers(agent)])],
        ["disallowedTools", deny.length === 0 ? undefined : deny],
        ["model", modelWord(agent, "qwen")],
        ["approvalMode", approvalMode ?? approvalOf(agent.mode)],
        ["maxTurns", agent.limits.turns],
        ["color", agent.color],
        ["background", agent.background],
        ["mcpServers", inlineServers(agent)],
        ["hooks", agent.hooks],
        ...Object.entries(rest),
      ],
      agent.prompt,
      note,
    );
  },
  fileName: (agent) => `${fileStem({ ...agent, id: qwenName(agent.id) })}.md`,
};

/** Letters of any script, digits, `_` and `-`, from 2 to 50 of them. */
function qwenName(id: string): string {
  if (/^[\p{L}\p{N}_-]{2,50}$/u.test(id)) return id;
  const plain = slug(id).slice(0, 50);
  return plain.length < 2 ? `agent-${plain}` : plain;
}

/** A word with a pattern is none there; what it was meant to deny is denied here. */
function someCalls(tool: PortableTool): readonly PortableTool[] {
  const [, word = "", pattern] = /^([^(]+)\((.*)\)$/s.exec(tool.raw.trim()) ?? [];
  if (tool.class !== "other" || pattern === undefined) return [tool];
  return words
    .read(word.trim())
    .map((each) => (each.class === "other" ? tool : { ...each, pattern, raw: tool.raw }));
}

function approvalOf(mode: PortableMode | undefined): string {
  const same = [...modes].find(([, portable]) => mode !== undefined && portable === mode);
  return same?.[0] ?? "default";
}

/** Left out, it is `auto-edit` in a trusted folder. A word that is not known must not become that. */
function modeOf(taker: ForeignFields, approval: string | undefined): PortableMode | undefined {
  const claude = taker.text("permissionMode");
  if (approval !== undefined) {
    if (modes.has(approval)) return modes.get(approval);
    if (approval.toLowerCase() === "plan") return "plan";
    taker.loses("mode-dropped", `Unknown approval mode ${quote(approval)}; the agent asks.`, "approvalMode");
    return claude === "plan" ? "plan" : undefined;
  }
  if (claude === undefined) return "edit";
  if (claudeModes.has(claude)) return claudeModes.get(claude);
  taker.loses("mode-dropped", `Unknown permission mode ${quote(claude)}; the agent asks.`, "permissionMode");
  return undefined;
}

function hooksOf(taker: ForeignFields): Readonly<Record<string, unknown>> | undefined {
  const hooks = taker.take("hooks");
  return isRecord(hooks) ? hooks : undefined;
}
