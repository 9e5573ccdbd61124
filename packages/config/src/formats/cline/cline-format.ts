import {
  allowedWords,
  emptyAgent,
  fileStem,
  needsText,
  oneAgent,
  refusedReading,
  restOf,
} from "../common-fields.ts";
import { createForeignFields, readWords, reportRest } from "../field-reader.ts";
import { holdRestrictions } from "../hold-restrictions.ts";
import type { AgentFormat, PortableAgent, PortableTool } from "../portable-agent.ts";
import { readFenced } from "../read-fenced.ts";
import { createToolWords } from "../tool-words.ts";
import { writeFenced } from "../write-fenced.ts";

const words = createToolWords({
  words: `
    read_file: read
    write_to_file: create
    replace_in_file: change
    execute_command: shell
    list_files: find list
    search_files: search
    web_fetch: fetch
    use_subagents: subagent
    ask_followup_question: ask
    use_skill: skill`,
  alsoReads: `
    list_code_definition_names: search
    apply_patch: create change
    web_search: websearch
    read_files: read
    search_codebase: search
    editor: create change
    run_commands: shell
    fetch_web_content: fetch
    ask_question: ask
    skills: skill
    spawn_agent: subagent`,
  readServer: (word) => (word === "use_mcp_tool" || word === "access_mcp_resource" ? [{}] : undefined),
  writeServer: ({ server, tool }) =>
    server === undefined && tool === undefined ? "use_mcp_tool" : undefined,
});

/** What the extension gives where no tools are named; the other client gives everything, and less is the safe reading. */
const research: readonly PortableTool[] = (["read", "search", "find", "list"] as const).map((kind) => ({
  class: kind,
  raw: "(research)",
}));

/** Cline: fields between fences in a .yaml file. */
export const clineFormat: AgentFormat = {
  id: "cline",
  read(text, context) {
    const fields = readFenced(text, context);
    if ("refused" in fields) return refusedReading(fields);
    const taker = createForeignFields(fields.values, context, fields.locate);
    const entries = taker.entries("tools");
    if (entries === undefined)
      taker.report(
        "note",
        "tools-omitted",
        "The clients of Cline disagree on what a missing `tools` means; here the agent can only read and search.",
        "name",
      );
    const provider = taker.text("providerId");
    const model = taker.text("modelId");
    const written: PortableAgent = {
      ...emptyAgent("cline", context.file),
      id: needsText(taker, "name", "cline"),
      description: needsText(taker, "description", "cline"),
      prompt: fields.body,
      tools:
        entries === undefined
          ? research
          : readWords(entries, words, { taker, key: "tools", product: "Cline" }),
      skills: taker.names("skills"),
      model:
        model === undefined
          ? undefined
          : { type: "exact", value: provider === undefined ? model : `${provider}/${model}`, words: "cline" },
      limits: { turns: taker.number("maxIterations") },
      rest: {},
    };
    const agent = holdRestrictions(written, taker, {
      product: "Cline",
      keys: ["disallowedTools", "permissionMode"],
    });
    reportRest(taker, "Cline");
    return oneAgent(
      { ...agent, rest: taker.rest() },
      { fields, taker, places: { model: "modelId", maxTurns: "maxIterations" } },
    );
  },
  write(agent, note) {
    const { model } = agent;
    const [provider, ...id] =
      model?.words === "cline" && model.value.includes("/") ? model.value.split("/") : [];
    const plain = model?.words === "cline" && !model.value.includes("/") ? model.value : undefined;
    const every = { ...agent, deny: [...agent.deny, { class: "notebook", raw: "" } as const] };
    return writeFenced(
      [
        ["name", agent.id],
        ["description", agent.description],
        ["tools", allowedWords(agent.tools === "all" ? every : agent, "cline", words)],
        ["skills", agent.skills],
        ["providerId", provider],
        ["modelId", provider === undefined ? plain : id.join("/")],
        ["maxIterations", agent.limits.turns],
        ...restOf(agent, "cline"),
      ],
      agent.prompt,
      note,
    );
  },
  fileName: (agent) => `${fileStem(agent)}.yaml`,
};
