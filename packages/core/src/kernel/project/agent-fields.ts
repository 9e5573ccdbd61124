import { join } from "node:path";
import {
  type AgentDefinition,
  type DefinitionKey,
  definitionKeys,
  fieldOf,
} from "@retinue/config/agents/agent-definition.ts";
import { describeRunner } from "@retinue/config/agents/agent-runner.ts";
import { assumedTools } from "@retinue/config/agents/lint-definition.ts";
import { memoryDirectoryName } from "@retinue/config/instructions/memory-place.ts";
import {
  type AliasTable,
  parseModelReference,
  resolveModelReference,
} from "@retinue/config/models/select-subagent-model.ts";
import type { Paths } from "@retinue/config/settings/paths.ts";
import { type GrantedTool, grantTools } from "@retinue/config/tools/tool-grants.ts";

/** One field of an agent for people: what holds, and where it comes from. */
export interface AgentField {
  readonly label: string;
  readonly value: string;
  readonly origin?: string;
}

interface FieldFacts {
  readonly aliases: AliasTable;
  /** Tools that deny rules take away altogether. */
  readonly deniedTools: ReadonlySet<string>;
  /** Where agents keep their memory. */
  readonly discovered: { readonly paths: Pick<Paths, "agentMemory"> };
  pathText(file: string): string;
}

/** The fields of a definition as they will hold: those that are written, and the defaults that matter. */
export function describeFields(definition: AgentDefinition, facts: FieldFacts): AgentField[] {
  return definitionKeys
    .filter((key) => key !== "name" && key !== "description")
    .flatMap((key): AgentField[] => {
      const fields = describeField(key, definition, facts);
      return key === "disallowedTools" ? [...fields, canUse(definition, facts)] : fields;
    });
}

function describeField(key: DefinitionKey, definition: AgentDefinition, facts: FieldFacts): AgentField[] {
  const value = valueText(key, definition, facts);
  if (value !== undefined) return [{ label: key, value, origin: originOf(key, definition, facts) }];
  const { shownDefault } = fieldOf(key);
  return shownDefault === undefined ? [] : [{ label: key, value: shownDefault, origin: "default" }];
}

function valueText(
  key: DefinitionKey,
  definition: AgentDefinition,
  { aliases, discovered, pathText }: FieldFacts,
): string | undefined {
  const value = definition[key];
  if (value === undefined) return undefined;
  if (definition.memory !== undefined && key === "memory") {
    const root = discovered.paths.agentMemory[definition.memory];
    return `${definition.memory}, in ${pathText(join(root, memoryDirectoryName(definition)))}`;
  }
  if (key === "model") return modelText(String(value), aliases);
  if (key === "hooks") return (definition.hooks ?? []).map(({ event }) => event).join(", ") || "none";
  if (key === "mcpServers") return (definition.mcpServers ?? []).map(({ name }) => name).join(", ") || "none";
  if (definition.runner !== undefined && key === "runner") {
    const runner = definition.runner;
    const env = runner.env === undefined ? "" : `; gets ${runner.env.join(", ")}`;
    return `${describeRunner(runner)}${env}${runner.unguarded === true ? "; unguarded" : ""}`;
  }
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(", ");
  return String(value);
}

function modelText(model: string, aliases: AliasTable): string {
  const resolved = resolveModelReference(parseModelReference(model, aliases), { aliases });
  switch (resolved.type) {
    case "inherit":
      return "inherit: the model of its parent";
    case "unclear":
      return `${model}: cannot be used, because ${resolved.why}`;
    case "model": {
      const id = resolved.provider === undefined ? resolved.id : `${resolved.provider}/${resolved.id}`;
      return id === model ? model : `${model} = ${id}`;
    }
  }
}

function originOf(
  key: DefinitionKey,
  { written, source }: AgentDefinition,
  { pathText }: FieldFacts,
): string {
  if (source.scope === "builtin") return "built-in";
  const line = written[key]?.place?.line;
  const file = source.file === undefined ? source.scope : pathText(source.file);
  return line === undefined ? file : `${file}:${line}`;
}

function canUse(definition: AgentDefinition, { deniedTools }: FieldFacts): AgentField {
  const available = assumedTools(definition).filter(({ name }) => !deniedTools.has(name));
  const grant = grantTools({ definition, available, role: "subagent" });
  const value =
    grant.type === "granted"
      ? grant.tools.map(grantText).join(", ") || "no tools"
      : "nothing, so starting it is refused";
  return { label: "can use", value, origin: "as a subagent, if its parent has them" };
}

function grantText({ name, allowOnly, deny, confinedTo, alsoIn }: GrantedTool): string {
  const limits = [
    ...(confinedTo === undefined ? [] : ["only in its memory"]),
    ...(allowOnly === undefined ? [] : [`only ${allowOnly.join(" or ")}`]),
    ...(alsoIn === undefined ? [] : ["also in its memory"]),
    ...(deny === undefined ? [] : [`not ${deny.join(" or ")}`]),
  ];
  return limits.length === 0 ? name : `${name} [${limits.join("; ")}]`;
}
