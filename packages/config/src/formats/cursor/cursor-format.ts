import {
  baseName,
  emptyAgent,
  fileStem,
  hasClass,
  modelOf,
  modelWord,
  oneAgent,
  refusedReading,
  restOf,
} from "../common-fields.ts";
import { createForeignFields, reportRest } from "../field-reader.ts";
import { holdRestrictions } from "../hold-restrictions.ts";
import type { AgentFormat, PortableAgent, PortableTool } from "../portable-agent.ts";
import { readFenced } from "../read-fenced.ts";
import { writeFenced } from "../write-fenced.ts";

const changing = ["create", "change", "notebook", "shell"] as const;

/** What `readonly: true` takes away. */
const notReadOnly: readonly PortableTool[] = changing.map((kind) => ({ class: kind, raw: "readonly" }));

/** Cursor has no list of tools: everything, or everything that only reads. */
export const cursorFormat: AgentFormat = {
  id: "cursor",
  read(text, context) {
    const fields = readFenced(text, context);
    if ("refused" in fields) return refusedReading(fields);
    const taker = createForeignFields(fields.values, context, fields.locate);
    const isReadOnly = taker.flag("readonly") === true;
    const written: PortableAgent = {
      ...emptyAgent("cursor", context.file),
      id: taker.text("name") ?? baseName(context.relative, /\.md$/i),
      description: taker.text("description") ?? "",
      prompt: fields.body,
      model: modelOf(taker.text("model"), "cursor"),
      deny: isReadOnly ? notReadOnly : [],
      background: taker.flag("is_background"),
      rest: {},
    };
    const agent = holdRestrictions(written, taker, {
      product: "Cursor",
      keys: ["tools", "disallowedTools", "permissionMode"],
    });
    if (agent.description === "")
      taker.report(
        "warning",
        "no-description",
        "There is no `description`, by which a model decides when to use the agent.",
        "description",
      );
    reportRest(taker, "Cursor");
    return oneAgent(
      { ...agent, rest: taker.rest() },
      { fields, taker, places: { background: "is_background", disallowedTools: "readonly" } },
    );
  },
  write(agent, note) {
    const isReadOnly = changing.every((kind) => hasClass(agent, kind) === "no");
    return writeFenced(
      [
        ["name", agent.id],
        ["description", agent.description],
        ["model", modelWord(agent, "cursor")],
        ["readonly", isReadOnly ? true : undefined],
        ["is_background", agent.background],
        ...restOf(agent, "cursor"),
      ],
      agent.prompt,
      note,
    );
  },
  fileName: (agent) => `${fileStem(agent)}.md`,
};
