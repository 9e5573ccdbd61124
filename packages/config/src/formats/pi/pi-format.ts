import { isRecord } from "@retinue/base/foundation/json-record.ts";
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
} from "../common-fields.ts";
import { createForeignFields, readWords, reportRest } from "../field-reader.ts";
import { holdRestrictions } from "../hold-restrictions.ts";
import type { AgentFormat, PortableAgent, PortableTool } from "../portable-agent.ts";
import { readFenced } from "../read-fenced.ts";
import { createToolWords } from "../tool-words.ts";
import { writeFenced } from "../write-fenced.ts";

const words = createToolWords({
  words: `
    read: read
    write: create
    edit: change
    bash: shell
    grep: search
    find: find
    ls: list
    subagent: subagent`,
  readServer(word) {
    if (!word.startsWith("mcp:")) return undefined;
    const [server = "", tool] = word.slice("mcp:".length).split("/");
    return [{ server, tool }];
  },
  writeServer: ({ server, tool }) =>
    server === undefined ? undefined : `mcp:${server}${tool === undefined ? "" : `/${tool}`}`,
});

/** Pi's own tools, which an agent without a list has. */
const defaults: readonly PortableTool[] = (
  ["read", "create", "change", "shell", "search", "find", "list"] as const
).map((kind) => ({ class: kind, raw: "(default)" }));

/** A model may have a colon of its own. */
const modelWithThinking = /^(.*?)(?::(off|minimal|low|medium|high|xhigh))?$/s;

/** pi-subagents. */
export const piFormat: AgentFormat = {
  id: "pi",
  read(text, context) {
    const fields = readFenced(text, context);
    if ("refused" in fields) return refusedReading(fields);
    const taker = createForeignFields(fields.values, context, fields.locate);
    const prefix = taker.text("package");
    const name = taker.text("name") ?? baseName(context.relative, /\.md$/i);
    const entries = taker.entries("tools");
    const [, model = "", suffix] = modelWithThinking.exec(taker.text("model") ?? "") ?? [];
    const budget = taker.take("turnBudget");
    const ms = taker.number("timeoutMs");
    const turns = isRecord(budget) && typeof budget["maxTurns"] === "number" ? budget["maxTurns"] : undefined;
    const grace = isRecord(budget) && budget["graceTurns"] !== undefined ? { turnBudget: budget } : {};
    const written: PortableAgent = {
      ...emptyAgent("pi", context.file),
      id: prefix === undefined ? name : `${prefix}.${name}`,
      description: taker.text("description") ?? "",
      prompt: fields.body,
      tools:
        entries === undefined ? defaults : readWords(entries, words, { taker, key: "tools", product: "pi" }),
      model: modelOf(model === "" ? undefined : model, "pi"),
      effort: taker.text("thinking") ?? suffix,
      skills: taker.names("skills"),
      background: taker.flag("async"),
      limits: { turns, seconds: ms === undefined ? undefined : ms / 1000 },
      rest: {},
    };
    const agent = holdRestrictions(written, taker, {
      product: "pi",
      keys: ["disallowedTools", "permissionMode"],
    });
    if (agent.description === "")
      taker.report(
        "warning",
        "no-description",
        "There is no `description`, by which a model decides when to use the agent.",
        "description",
      );
    if (taker.has("runner"))
      taker.fails("runner", "an agent that runs another program cannot be started here");
    reportRest(taker, "pi");
    return oneAgent(
      { ...agent, rest: { ...taker.rest(), ...grace } },
      {
        fields,
        taker,
        places: { effort: "thinking", background: "async", maxTurns: "turnBudget", limits: "timeoutMs" },
      },
    );
  },
  write(agent, note) {
    const { turnBudget, ...rest } = Object.fromEntries(restOf(agent, "pi"));
    const { turns, seconds } = agent.limits;
    const every: PortableAgent = { ...agent, deny: [...agent.deny, { class: "notebook", raw: "" }] };
    return writeFenced(
      [
        ["name", agent.id],
        ["description", agent.description],
        ["tools", allowedWords(agent.tools === "all" ? every : agent, "pi", words)],
        ["model", modelWord(agent, "pi", /^[\w.-]+\/\S+$/)],
        ["thinking", agent.effort],
        ["skills", agent.skills],
        ["async", agent.background],
        ["turnBudget", turnBudget ?? (turns === undefined ? undefined : { maxTurns: turns })],
        ["timeoutMs", seconds === undefined ? undefined : seconds * 1000],
        ...Object.entries(rest),
      ],
      agent.prompt,
      note,
    );
  },
  fileName: (agent) => `${fileStem(agent)}.md`,
};
