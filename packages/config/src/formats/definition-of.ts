import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import type { AgentScope } from "../agents/agent-source.ts";
import type { ParsedAgent } from "../agents/parse-agent-definition.ts";
import { readDefinitionObject } from "../agents/read-definition-object.ts";
import {
  parseModelReference,
  resolveModelReference,
  shippedAliases,
} from "../models/select-subagent-model.ts";
import { ownFields } from "./claude/claude-format.ts";
import { usableName } from "./common-fields.ts";
import { formatFacts } from "./format-facts.ts";
import type { PortableAgent, ReadAgent } from "./portable-agent.ts";

/** The definition that an agent of any format is here, with its fields at the lines of its own file. */
export function definitionOf(
  { agent, placeOf }: ReadAgent,
  { scope }: { readonly scope: AgentScope },
): ParsedAgent {
  const { file, format } = agent.origin;
  const notes: Diagnostic[] = [];
  const note = (code: string, message: string, key: string): void => {
    notes.push({
      severity: "note",
      code,
      message,
      file,
      ...placeOf([key]),
    });
  };
  const name = usableName(agent.id);
  if (name !== agent.id)
    note(
      "name-changed",
      `The name ${JSON.stringify(agent.id)} cannot be used here; the agent is \`${name}\`.`,
      "name",
    );
  const model = usableModel(agent);
  if (agent.model !== undefined && model === undefined)
    note(
      "model-dropped",
      `The model ${JSON.stringify(agent.model.value)} is a name of ${formatFacts[format].title}; here the agent uses its parent's.`,
      "model",
    );
  const fields = Object.fromEntries(
    ownFields({ ...agent, id: name, model: undefined }, format === "agents" ? "agents" : "claude").filter(
      ([, value]) => value !== undefined,
    ),
  );
  const description = agent.description === "" ? `The agent ${name}.` : agent.description;
  const object = { ...fields, description, ...(model === undefined ? {} : { model }), prompt: agent.prompt };
  const parsed = readDefinitionObject(name, object, {
    scope,
    file,
    locate: (path) => placeOf(path) ?? { line: 1, column: 1 },
  });
  if (parsed.definition === undefined) return { diagnostics: [...notes, ...parsed.diagnostics] };
  const line = placeOf(["name"])?.line;
  const source = { ...parsed.definition.source, format, line };
  return { definition: { ...parsed.definition, source }, diagnostics: [...notes, ...parsed.diagnostics] };
}

/** A model that can be asked for here under the same name: a tier, an id of Anthropic, or `provider/model`. */
function usableModel({ model }: PortableAgent): string | undefined {
  if (model === undefined) return undefined;
  const isOwn = model.words === "claude" || model.words === "agents";
  if (!isOwn && !/^claude-[a-z0-9-]+$|^[\w.-]+\/\S+$/.test(model.value)) return undefined;
  const reference = parseModelReference(model.value, shippedAliases);
  return resolveModelReference(reference, { aliases: shippedAliases }).type === "unclear" && !isOwn
    ? undefined
    : model.value;
}
