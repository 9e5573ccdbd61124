import {
  type AgentDefinition,
  type AgentDetails,
  type RegisteredAgent,
  scopeWords,
} from "@retinue/core/kernel/project/project-agents.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { openProject } from "../../shared/open-project.ts";
import { createPaint, type Paint } from "../../shared/paint.ts";
import { stripControlCharacters, wrap } from "../../shared/strip-control-characters.ts";
import { groupByFile, renderDiagnostics } from "../views/render-diagnostics.ts";
import { renderFields, type ShownField } from "../views/render-fields.ts";
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
  const { agents, nameOf, textOf } = openProject(context);
  const details = await agents.get(name, { pathText: nameOf });
  const { agent, fields, diagnostics } = details;
  if (options.json === true) {
    stdout.write(`${JSON.stringify(asJson(details), undefined, 2)}\n`);
    return 0;
  }
  const paint = createPaint(stdout.isColourAllowed);
  const width = Math.min(stdout.columns ?? 100, 120);
  const { definition } = agent;
  const parts = [
    `${paint.bold(stripControlCharacters(agent.id))}\n${wrap(prose(definition.description), width).join("\n")}\n`,
    renderFields([...sourceFields(agent, nameOf), ...fields], paint, width),
    renderPrompt(definition.prompt, paint, options.prompt === true),
    ...(diagnostics.length === 0
      ? []
      : [
          renderDiagnostics(groupByFile(diagnostics), {
            paint,
            width,
            nameOf,
            textOf,
          }),
        ]),
  ];
  stdout.write(parts.join("\n"));
  return 0;
}

function sourceFields(
  { definition, shadowed, deniedBy }: RegisteredAgent,
  nameOf: (file: string) => string,
): ShownField[] {
  const whence = ({ source }: AgentDefinition): string => {
    const plugin = source.plugin === undefined ? "" : ` ${source.plugin}`;
    const file = source.file === undefined ? "" : `, ${nameOf(source.file)}`;
    const line = source.line === undefined ? "" : `:${source.line}`;
    const format = source.format === undefined ? "" : `, format ${source.format}`;
    return `${scopeWords[source.scope]}${plugin}${file}${line}${format}`;
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

function asJson({ agent, fields: described, diagnostics }: AgentDetails) {
  const { id, definition, shadowed, deniedBy } = agent;
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
      described
        .filter(({ label }) => label === "can use" || label === "model")
        .map(({ label, value }) => [label === "model" ? "model" : "tools", value]),
    ),
    shadows: shadowed.map(sourceAsJson),
    deniedBy,
    diagnostics: diagnostics.map(diagnosticAsJson),
  };
}
