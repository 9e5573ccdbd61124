import { join } from "node:path";
import { memoryDirectoryName } from "../../../../context/memory-place.ts";
import type { AgentDefinition, RegisteredAgent } from "../../../../definitions/agent-definition.ts";
import { type DefinitionKey, definitionKeys } from "../../../../definitions/definition-keys.ts";
import { assumedTools } from "../../../../definitions/lint-definition.ts";
import type { Diagnostic } from "../../../../foundation/diagnostic.ts";
import { RetinueError } from "../../../../foundation/retinue-error.ts";
import type { AliasTable } from "../../../../model/alias-table.ts";
import { parseModelReference, resolveModelReference } from "../../../../model/model-reference.ts";
import type { Paths } from "../../../../settings/paths.ts";
import { type GrantedTool, grantTools } from "../../../../tools/grants/tool-grants.ts";
import { type GatheredSession, gatherSession } from "../../gather-session.ts";
import type { CommandContext } from "../../session-options.ts";
import { createPaint, type Paint } from "../../views/paint.ts";
import { groupByFile, renderDiagnostics } from "../../views/render-diagnostics.ts";
import { renderFields, type ShownField } from "../../views/render-fields.ts";
import { stripControlCharacters, wrap } from "../../views/strip-control-characters.ts";
import { scopeWords } from "./agents-list.ts";
import { lintAll } from "./check-everything.ts";
import { diagnosticAsJson, sourceAsJson } from "./source-as-json.ts";

export interface ShowOptions {
  readonly prompt?: boolean;
  readonly json?: boolean;
}

const promptLines = 20;

/** `retinue agents show NAME`: everything resolved, and where each field came from. */
export async function agentsShow(
  context: CommandContext,
  name: string,
  options: ShowOptions,
): Promise<number> {
  const { stdout } = context.host;
  const session = await gatherSession(context);
  const agent = find(name, session);
  const diagnostics = problemsOf(agent.definition, session);
  if (options.json === true) {
    stdout.write(`${JSON.stringify(asJson(agent, diagnostics, session), undefined, 2)}\n`);
    return 0;
  }
  const paint = createPaint(stdout.isColourAllowed);
  const width = Math.min(stdout.columns ?? 100, 120);
  const { definition } = agent;
  const parts = [
    `${paint.bold(stripControlCharacters(agent.id))}\n${wrap(prose(definition.description), width).join("\n")}\n`,
    renderFields([...sourceFields(agent, session), ...describeFields(definition, session)], paint, width),
    renderPrompt(definition.prompt, paint, options.prompt === true),
    ...(diagnostics.length === 0
      ? []
      : [
          renderDiagnostics(groupByFile(diagnostics), {
            paint,
            width,
            nameOf: session.nameOf,
            textOf: session.textOf,
          }),
        ]),
  ];
  stdout.write(parts.join("\n"));
  return 0;
}

function find(name: string, { discovered }: GatheredSession): RegisteredAgent {
  const found = discovered.registry.find(name);
  if (found.type !== "unknown") return found.agent;
  const nearest = found.nearest === undefined ? "" : `Did you mean ${JSON.stringify(found.nearest)}? `;
  throw new RetinueError("unknown-agent", `There is no agent ${JSON.stringify(name)}.`, {
    advice: `${nearest}The agents here are: ${found.available.join(", ")}.`,
  });
}

function problemsOf(definition: AgentDefinition, session: GatheredSession): Diagnostic[] {
  const { file, scope } = definition.source;
  if (scope === "builtin") return [];
  const ofFile = session.diagnostics.filter((diagnostic) => file !== undefined && diagnostic.file === file);
  return [...(scope === "session" ? [] : ofFile), ...lintAll([definition], session)];
}

function sourceFields(
  { definition, shadowed, deniedBy }: RegisteredAgent,
  { nameOf }: GatheredSession,
): ShownField[] {
  const whence = ({ source }: AgentDefinition): string => {
    const plugin = source.plugin === undefined ? "" : ` ${source.plugin}`;
    const file = source.file === undefined ? "" : `, ${nameOf(source.file)}`;
    return `${scopeWords[source.scope]}${plugin}${file}`;
  };
  return [
    { label: "from", value: whence(definition) },
    ...(shadowed.length === 0 ? [] : [{ label: "shadows", value: shadowed.map(whence).join("\n") }]),
    ...(deniedBy === undefined ? [] : [{ label: "hidden by", value: `the deny rule ${deniedBy}` }]),
  ];
}

function renderPrompt(prompt: string, paint: Paint, isWhole: boolean): string {
  const lines = prompt.split(/\r?\n/).map(stripControlCharacters);
  if (prompt.trim() === "") return `${paint.bold("Prompt")}: none\n`;
  const shown = isWhole ? lines : lines.slice(0, promptLines);
  const left = lines.length - shown.length;
  const more = left === 0 ? [] : [paint.dim(`… ${left} more lines: --prompt shows all.`)];
  return [paint.bold("Prompt"), ...[...shown, ...more].map((line) => `  ${line}`.trimEnd()), ""].join("\n");
}

function prose(text: string): string {
  return text.split("\n").map(stripControlCharacters).join("\n");
}

function asJson(
  { id, definition, shadowed, deniedBy }: RegisteredAgent,
  diagnostics: readonly Diagnostic[],
  session: GatheredSession,
) {
  const { written: _written, source: _source, behaviour: _behaviour, name: _name, ...fields } = definition;
  return {
    version: 1,
    id,
    ...sourceAsJson(definition),
    fields,
    origins: Object.fromEntries(
      Object.entries(definition.written).map(([key, { place }]) => [key, place ?? null]),
    ),
    resolved: Object.fromEntries(
      describeFields(definition, session)
        .filter(({ label }) => label === "can use" || label === "model")
        .map(({ label, value }) => [label === "model" ? "model" : "tools", value]),
    ),
    shadows: shadowed.map(sourceAsJson),
    ...(deniedBy === undefined ? {} : { deniedBy }),
    diagnostics: diagnostics.map(diagnosticAsJson),
  };
}

export interface FieldFacts {
  readonly aliases: AliasTable;
  /** Tools that deny rules take away altogether. */
  readonly deniedTools: ReadonlySet<string>;
  /** Where agents keep their memory. */
  readonly discovered: { readonly paths: Pick<Paths, "agentMemory"> };
  nameOf(file: string): string;
}

/** The fields of a definition as they will hold: those that are written, and the defaults that matter. */
export function describeFields(definition: AgentDefinition, facts: FieldFacts): ShownField[] {
  return definitionKeys
    .filter((key) => key !== "name" && key !== "description")
    .flatMap((key): ShownField[] => {
      const fields = describeField(key, definition, facts);
      return key === "disallowedTools" ? [...fields, canUse(definition, facts)] : fields;
    });
}

function describeField(key: DefinitionKey, definition: AgentDefinition, facts: FieldFacts): ShownField[] {
  const value = valueText(key, definition, facts);
  if (value !== undefined) return [{ label: key, value, origin: originOf(key, definition, facts) }];
  const fallback = defaults.get(key);
  return fallback === undefined ? [] : [{ label: key, value: fallback, origin: "default" }];
}

const defaults: ReadonlyMap<DefinitionKey, string> = new Map([
  ["tools", "all of its parent's"],
  ["model", "inherit: the model of its parent"],
  ["permissionMode", "that of its parent"],
  ["maxTurns", "50"],
]);

function valueText(
  key: DefinitionKey,
  definition: AgentDefinition,
  { aliases, discovered, nameOf }: FieldFacts,
): string | undefined {
  const value = definition[key];
  if (value === undefined) return undefined;
  if (definition.memory !== undefined && key === "memory") {
    const root = discovered.paths.agentMemory[definition.memory];
    return `${definition.memory}, in ${nameOf(join(root, memoryDirectoryName(definition)))}`;
  }
  if (key === "model") return modelText(String(value), aliases);
  if (key === "hooks") return (definition.hooks ?? []).map(({ event }) => event).join(", ") || "none";
  if (key === "mcpServers") return (definition.mcpServers ?? []).map(({ name }) => name).join(", ") || "none";
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

function originOf(key: DefinitionKey, { written, source }: AgentDefinition, { nameOf }: FieldFacts): string {
  if (source.scope === "builtin") return "built-in";
  const line = written[key]?.place?.line;
  const file = source.file === undefined ? source.scope : nameOf(source.file);
  return line === undefined ? file : `${file}:${line}`;
}

function canUse(definition: AgentDefinition, { deniedTools }: FieldFacts): ShownField {
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
