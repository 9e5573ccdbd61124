import { countBySeverity, type Diagnostic, plural } from "@retinue/base/foundation/diagnostic.ts";
import {
  type AgentList,
  type AgentSummary,
  type ListedAgent,
  scopeWords,
} from "@retinue/core/kernel/project/project-agents.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { openProject } from "../../shared/open-project.ts";
import { createPaint } from "../../shared/paint.ts";
import { type Column, renderTable } from "../views/render-table.ts";
import { sourceAsJson } from "./source-as-json.ts";

export interface ListOptions {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** `retinue agents list`: who there is, from where, and whom they shadow. */
export async function agentsList(context: CommandContext, options: ListOptions): Promise<number> {
  const { stdout, stderr } = context.host;
  const project = openProject(context);
  const all = options.all === true;
  const list = await project.agents.list({ all });
  const diagnostics = [...(project.option?.diagnostics ?? []), ...list.diagnostics];
  if (options.json === true) {
    stdout.write(`${JSON.stringify(listAsJson(list.agents, diagnostics), undefined, 2)}\n`);
    return 0;
  }
  const rows = list.agents.flatMap((agent) => rowsOf(agent, all));
  const paint = createPaint(stdout.isColourAllowed);
  stdout.write(renderTable({ columns, rows, width: stdout.columns, paint }));
  const remarks = remarksOf({ ...list, diagnostics }, all);
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

function rowsOf(agent: ListedAgent, withShadowed: boolean): string[][] {
  const { id, shadowed, deniedBy } = agent;
  const shadows = [...new Set(shadowed.map(scopeOf))].join(", ");
  const scope = scopeOf(agent);
  const mark = deniedBy === undefined ? "" : "hidden";
  const over = shadows === "" ? "" : `over ${shadows}`;
  const notes = [over, mark].filter((note) => note !== "").join("; ");
  const winner = [id, notes === "" ? scope : `${scope} (${notes})`, ...cellsOf(agent)];
  if (!withShadowed) return [winner];
  const losers = shadowed.map((loser) => [
    `  ${loser.definition.name}`,
    `${scopeOf(loser)} (shadowed)`,
    ...cellsOf(loser),
  ]);
  return [winner, ...losers];
}

function scopeOf({ definition }: AgentSummary): string {
  const { scope, format } = definition.source;
  return format === undefined ? scopeWords[scope] : `${scopeWords[scope]}, ${format}`;
}

function cellsOf({ model, tools, about }: AgentSummary): string[] {
  return [model, tools, about];
}

function remarksOf({ own, hidden, diagnostics }: AgentList, all: boolean): string[] {
  const broken = new Set(
    diagnostics.filter(({ severity }) => severity !== "note").map(({ file }) => file ?? ""),
  );
  return [
    ...(own === 0 ? ["Only built-in agents yet. `retinue agents new` makes one of your own."] : []),
    ...(hidden > 0 && !all
      ? [`${plural(hidden, "agent")} hidden by deny rules; \`retinue agents --all\` shows all.`]
      : []),
    ...(broken.size === 0
      ? []
      : [
          `${plural(broken.size, "file")} ${broken.size === 1 ? "has" : "have"} problems: run \`retinue agents check\`.`,
        ]),
  ];
}

function listAsJson(agents: readonly ListedAgent[], diagnostics: readonly Diagnostic[]) {
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
      shadows: shadowed.map((loser) => sourceAsJson(loser.definition)),
      deniedBy,
    })),
    diagnostics: { errors, warnings, notes },
  };
}
