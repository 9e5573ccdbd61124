import type {
  AgentDefinition,
  AgentScope,
  RegisteredAgent,
} from "../../../../definitions/agent-definition.ts";
import { oneLine, toolsPhrase } from "../../../../definitions/describe-agents.ts";
import { firstSentence } from "../../../../definitions/first-sentence.ts";
import { type GatheredSession, gatherSession } from "../../gather-session.ts";
import type { CommandContext } from "../../session-options.ts";
import { createPaint } from "../../views/paint.ts";
import { countBySeverity, plural } from "../../views/render-diagnostics.ts";
import { type Column, renderTable } from "../../views/render-table.ts";
import { sourceAsJson } from "./source-as-json.ts";

export interface ListOptions {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** `retinue agents list`: who there is, from where, and whom they shadow. */
export async function agentsList(context: CommandContext, options: ListOptions): Promise<number> {
  const { stdout, stderr } = context.host;
  const session = await gatherSession(context);
  const { registry } = session.discovered;
  const agents = options.all === true ? registry.all() : registry.list();
  if (options.json === true) {
    stdout.write(`${JSON.stringify(listAsJson(agents, session), undefined, 2)}\n`);
    return 0;
  }
  const rows = agents.flatMap((agent) => rowsOf(agent, options.all === true));
  const paint = createPaint(stdout.isColourAllowed);
  stdout.write(renderTable({ columns, rows, width: stdout.columns, paint }));
  const remarks = remarksOf(session, options);
  const dim = createPaint(stderr.isColourAllowed).dim;
  if (remarks.length > 0) stderr.write(`\n${remarks.map((remark) => `${dim(remark)}\n`).join("")}`);
  return 0;
}

const columns: readonly Column[] = [
  { heading: "NAME", atLeast: 10, atMost: 30, style: "name" },
  { heading: "SCOPE", atLeast: 8, atMost: 26 },
  { heading: "MODEL", atLeast: 7, atMost: 16 },
  { heading: "TOOLS", atLeast: 10, atMost: 22 },
  { heading: "DESCRIPTION", atLeast: 16, elseBelow: 44, style: "dim" },
];

function rowsOf({ id, definition, shadowed, deniedBy }: RegisteredAgent, withShadowed: boolean): string[][] {
  const shadows = [...new Set(shadowed.map(({ source }) => scopeWords[source.scope]))].join(", ");
  const scope = scopeWords[definition.source.scope];
  const mark = deniedBy === undefined ? "" : "hidden";
  const over = shadows === "" ? "" : `over ${shadows}`;
  const notes = [over, mark].filter((note) => note !== "").join("; ");
  const winner = [id, notes === "" ? scope : `${scope} (${notes})`, ...cellsOf(definition)];
  if (!withShadowed) return [winner];
  const losers = shadowed.map((loser) => [
    `  ${loser.name}`,
    `${scopeWords[loser.source.scope]} (shadowed)`,
    ...cellsOf(loser),
  ]);
  return [winner, ...losers];
}

function cellsOf(definition: AgentDefinition): string[] {
  return [
    oneLine(definition.model ?? "inherit"),
    toolsPhrase(definition),
    firstSentence(oneLine(definition.description)),
  ];
}

export const scopeWords: Readonly<Record<AgentScope, string>> = {
  managed: "managed",
  session: "session",
  project: "project",
  user: "user",
  plugin: "plugin",
  builtin: "built-in",
};

function remarksOf(session: GatheredSession, options: ListOptions): string[] {
  const { registry } = session.discovered;
  const all = registry.all();
  const own = all.filter(({ definition }) => definition.source.scope !== "builtin");
  const hidden = all.length - registry.list().length;
  const broken = new Set(
    session.diagnostics.filter(({ severity }) => severity !== "note").map(({ file }) => file ?? ""),
  );
  return [
    ...(own.length === 0 ? ["Only built-in agents yet. `retinue agents new` makes one of your own."] : []),
    ...(hidden > 0 && options.all !== true
      ? [`${plural(hidden, "agent")} hidden by deny rules; \`retinue agents --all\` shows all.`]
      : []),
    ...(broken.size === 0
      ? []
      : [
          `${plural(broken.size, "file")} ${broken.size === 1 ? "has" : "have"} problems: run \`retinue agents check\`.`,
        ]),
  ];
}

function listAsJson(agents: readonly RegisteredAgent[], { diagnostics }: GatheredSession) {
  const { error: errors, warning: warnings, note: notes } = countBySeverity(diagnostics);
  return {
    version: 1,
    agents: agents.map(({ id, definition, shadowed, deniedBy }) => ({
      id,
      ...sourceAsJson(definition),
      model: definition.model ?? "inherit",
      tools: definition.tools ?? null,
      disallowedTools: definition.disallowedTools ?? [],
      description: definition.description,
      shadows: shadowed.map(sourceAsJson),
      ...(deniedBy === undefined ? {} : { deniedBy }),
    })),
    diagnostics: { errors, warnings, notes },
  };
}
