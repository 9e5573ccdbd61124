import type { AgentDefinition } from "../../../../definitions/agent-definition.ts";
import type { RegisteredAgent } from "../../../../definitions/agent-registry.ts";
import type { Diagnostic } from "../../../../foundation/diagnostic.ts";
import { RetinueError } from "../../../../foundation/retinue-error.ts";
import { type GatheredSession, gatherSession } from "../../gather-session.ts";
import type { CommandContext } from "../../session-options.ts";
import { createPaint, type Paint } from "../../views/paint.ts";
import { groupByFile, renderDiagnostics } from "../../views/render-diagnostics.ts";
import { renderFields, type ShownField } from "../../views/render-fields.ts";
import { stripControlCharacters, wrap } from "../../views/strip-control-characters.ts";
import { scopeWords } from "./agents-list.ts";
import { lintAll } from "./check-everything.ts";
import { describeFields } from "./describe-fields.ts";
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
