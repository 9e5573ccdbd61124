import {
  emptyAgent,
  modelOf,
  modelWord,
  needsText,
  oneAgent,
  refusedReading,
  restOf,
} from "../common-fields.ts";
import { createFieldTaker, reportRest } from "../field-reader.ts";
import type { AgentFormat, PortableAgent } from "../portable-agent.ts";
import { readFenced } from "../read-source.ts";
import { readOwnEntry } from "../tool-words.ts";
import { writeFenced } from "../write-text.ts";

/** goose reads a name, a description and a model, and nothing else: every agent has all extensions of its session. */
export const gooseFormat: AgentFormat = {
  id: "goose",
  read(text, context) {
    const fields = readFenced(text, context);
    if ("refused" in fields) return refusedReading(fields);
    const taker = createFieldTaker(fields.values, context, fields.locate);
    const entries = taker.entries("tools");
    if (entries !== undefined)
      taker.loses(
        "tools-not-expressible",
        "goose ignores `tools` and gives the agent everything; here the list counts.",
        "tools",
      );
    const denied = taker.entries("disallowedTools") ?? [];
    const agent: PortableAgent = {
      ...emptyAgent("goose", context.file),
      id: needsText(taker, "name", "goose"),
      description: taker.text("description") ?? "",
      prompt: fields.body,
      model: modelOf(taker.text("model"), "goose"),
      tools: entries === undefined || entries.includes("*") ? "all" : entries.map(readOwnEntry),
      deny: denied.map(readOwnEntry),
      ...(entries === undefined && denied.length === 0 ? {} : { ignoredThere: ["tools"] }),
      rest: {},
    };
    reportRest(taker, "goose");
    return oneAgent({ ...agent, rest: taker.rest() }, { fields, taker, places: {} });
  },
  write: (agent, note) =>
    writeFenced(
      [
        ["name", agent.id],
        ["description", agent.description],
        ["model", modelWord(agent, "goose")],
        ...restOf(agent, "goose"),
      ],
      agent.prompt,
      note,
    ),
  fileName: ({ id }) => `${id}.md`,
};
