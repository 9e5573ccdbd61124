import {
  emptyAgent,
  fileStem,
  modelOf,
  modelWord,
  needsText,
  oneAgent,
  refusedReading,
  restOf,
} from "../common-fields.ts";
import { createForeignFields, reportRest } from "../field-reader.ts";
import { holdRestrictions } from "../hold-restrictions.ts";
import type { AgentFormat, PortableAgent } from "../portable-agent.ts";
import { readFenced } from "../read-fenced.ts";
import { writeFenced } from "../write-fenced.ts";

/** goose reads a name, a description and a model, and nothing else: every agent has all extensions of its session. */
export const gooseFormat: AgentFormat = {
  id: "goose",
  read(text, context) {
    const fields = readFenced(text, context);
    if ("refused" in fields) return refusedReading(fields);
    const taker = createForeignFields(fields.values, context, fields.locate);
    const written: PortableAgent = {
      ...emptyAgent("goose", context.file),
      id: needsText(taker, "name", "goose"),
      description: taker.text("description") ?? "",
      prompt: fields.body,
      model: modelOf(taker.text("model"), "goose"),
      rest: {},
    };
    const agent = holdRestrictions(written, taker, {
      product: "goose",
      keys: ["tools", "disallowedTools", "permissionMode"],
    });
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
  fileName: (agent) => `${fileStem(agent)}.md`,
};
