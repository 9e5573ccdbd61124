import {
  allTokens,
  describeCost,
  describeDuration,
  describeTokens,
  describeTotalCost,
} from "../../../inspection/figures.ts";
import type { InFlight, InspectedAgent, Inspection, Refusal } from "../../../inspection/inspection.ts";
import { createTimeAxis } from "../../../inspection/time-axis.ts";
import type { Paint } from "./colour.ts";
import { renderAgentSteps } from "./inspection-steps-view.ts";
import { plural } from "./diagnostic-view.ts";
import { type Column, renderTable } from "./table-view.ts";
import { cutTo, stripControlCharacters, wrap } from "./text-width.ts";
import { renderTimeline, timelineLegend } from "./timeline-view.ts";

export interface InspectionViewOptions {
  readonly paint: Paint;
  /** Cells of a line. */
  readonly width: number;
  /** Also every step of every agent. */
  readonly steps: boolean;
}

const maxAgents = 40;
const maxRefusals = 20;
const maxTools = 12;

/** An inspection for a terminal. Every text of the transcript is made harmless on its way. */
export function renderInspection(inspection: Inspection, options: InspectionViewOptions): string {
  const { agents, only } = inspection;
  const [focus] = agents;
  const sections = [
    renderHead(inspection, options),
    renderAgents(inspection, options),
    renderTime(agents, options),
    renderModels(inspection, options),
    renderTools(inspection, options),
    renderList("REFUSED", inspection.refusals.slice(0, maxRefusals).map(refusalLine), options),
    renderList("IN FLIGHT", agents.flatMap(inFlightLines), options),
    renderList("NOTES", inspection.notes, options),
    ...(options.steps ? agents : [only === undefined ? [] : (focus ?? [])].flat()).map((agent) =>
      renderAgentSteps(agent, options),
    ),
  ];
  return sections.filter((section) => section !== "").join("\n");
}

function renderHead(
  { session, totals, agents, only, takenAt }: Inspection,
  { paint, width }: InspectionViewOptions,
): string {
  const [first] = agents;
  const place = [session.cwd, session.gitBranch].filter((text) => text !== undefined && text !== "");
  const state = first === undefined ? "" : describeState(first);
  const { usage } = totals;
  const took = createTimeAxis(agents).durationMs;
  const age = session.isLive ? `, seen at ${new Date(takenAt).toISOString().slice(11, 19)} UTC` : "";
  const facts = [
    ...(place.length === 0 ? [] : [place.join(", branch ")]),
    `${state}${session.isLive ? ", still open" : ""}${age}`,
    `${describeDuration(took)}: model ${describeDuration(totals.modelMs)}, tools ${describeDuration(totals.toolMs)}, neither ${describeDuration(totals.otherMs)}${agents.length > 1 ? " (added up over agents)" : ""}`,
    `${plural(agents.length, "agent")}, ${plural(totals.turns, "turn")}, ${plural(totals.toolUses, "call")}: ${totals.failedCalls} failed, ${totals.refusedCalls} refused`,
    ...(totals.questions + totals.retries + totals.compactions === 0
      ? []
      : [
          `${plural(totals.questions, "question")}, ${totals.retries} retries, ${plural(totals.compactions, "compaction")}`,
        ]),
    `${describeTokens(usage.inputTokens)} tokens in, ${describeTokens(usage.outputTokens)} out, ${describeTokens(usage.cacheReadTokens)} cache read, ${describeTokens(usage.cacheWriteTokens)} cache write`,
    describeTotalCost(totals),
  ];
  const title = only === undefined ? session.title : `agent ${only} of: ${session.title}`;
  return [
    paint.bold(cutTo(stripControlCharacters(title), width)),
    paint.dim(session.id),
    ...facts.flatMap((fact) => wrap(stripControlCharacters(fact), width - 2).map((line) => `  ${line}`)),
    "",
  ].join("\n");
}

function describeState({ state, reason, error }: InspectedAgent): string {
  return `${state}${reason === undefined ? "" : ` (${reason})`}${error === undefined ? "" : `: ${error}`}`;
}

const agentColumns: readonly Column[] = [
  { heading: "AGENT", atLeast: 12, atMost: 30, style: "name" },
  { heading: "STATE", atLeast: 11 },
  { heading: "TIME", atLeast: 6 },
  { heading: "CALLS", atLeast: 5 },
  { heading: "TOKENS", atLeast: 6 },
  { heading: "COST", atLeast: 7 },
  { heading: "DESCRIPTION", atLeast: 12, elseBelow: 24, style: "dim" },
];

function renderAgents({ agents }: Inspection, { paint, width }: InspectionViewOptions): string {
  const rows = agents.slice(0, maxAgents).map((agent) => {
    const { id, depth, agentType, name, description, state, totals } = agent;
    const label = id === "main" ? id : `${"  ".repeat(depth)}${id} ${name ?? agentType}`;
    return [
      label,
      state,
      describeDuration(totals.durationMs),
      String(totals.toolUses),
      describeTokens(allTokens(totals.usage)),
      describeCost(totals.cost),
      description,
    ].map(stripControlCharacters);
  });
  return (
    renderTable({ columns: agentColumns, rows, width, paint }) + more(agents.length, maxAgents, "agent")
  );
}

function renderTime(agents: readonly InspectedAgent[], options: InspectionViewOptions): string {
  const rows = renderTimeline(agents.slice(0, maxAgents), options);
  if (createTimeAxis(agents).durationMs === 0) return "";
  return `${options.paint.dim(`TIMELINE  ${timelineLegend}`)}\n${rows.join("\n")}\n`;
}

const modelColumns: readonly Column[] = [
  { heading: "MODEL", atLeast: 10, atMost: 28 },
  ...["TURNS", "TIME", "IN", "OUT", "READ", "WRITE", "COST"].map((heading) => ({ heading, atLeast: 4 })),
];

function renderModels({ byModel }: Inspection, { paint, width }: InspectionViewOptions): string {
  if (byModel.length === 0) return "";
  const rows = byModel.map(({ model, turns, usage, cost, modelMs }) => [
    stripControlCharacters(model),
    String(turns),
    describeDuration(modelMs),
    describeTokens(usage.inputTokens),
    describeTokens(usage.outputTokens),
    describeTokens(usage.cacheReadTokens),
    describeTokens(usage.cacheWriteTokens),
    describeCost(cost),
  ]);
  return renderTable({ columns: modelColumns, rows, width, paint });
}

const toolColumns: readonly Column[] = [
  { heading: "TOOL", atLeast: 10, atMost: 28 },
  ...["CALLS", "TIME", "FAILED", "REFUSED", "AGENTS' COST"].map((heading) => ({ heading, atLeast: 4 })),
];

function renderTools({ byTool }: Inspection, { paint, width }: InspectionViewOptions): string {
  if (byTool.length === 0) return "";
  const rows = byTool
    .slice(0, maxTools)
    .map(({ tool, calls, durationMs, failed, refused, agentsCost }) => [
      stripControlCharacters(tool),
      String(calls),
      describeDuration(durationMs),
      String(failed),
      String(refused),
      agentsCost === undefined ? "" : describeCost(agentsCost),
    ]);
  return renderTable({ columns: toolColumns, rows, width, paint }) + more(byTool.length, maxTools, "tool");
}

function refusalLine({ agentId, tool, about, reason }: Refusal): string {
  return `${agentId}: ${tool} ${about}: ${reason}`;
}

function inFlightLines({ id, inFlight, state }: InspectedAgent): readonly string[] {
  const until = state === "running" ? "" : " when it was cut off";
  return inFlight.map((open) => `${id}: ${describeInFlight(open)}${until}`);
}

function describeInFlight(open: InFlight): string {
  return open.type === "model" ? "waiting for the model" : `${open.tool} ${open.about}`.trim();
}

function renderList(
  heading: string,
  lines: readonly string[],
  { paint, width }: InspectionViewOptions,
): string {
  if (lines.length === 0) return "";
  const wrapped = lines.flatMap((line) =>
    wrap(stripControlCharacters(line), width - 2).map((part, index) => (index === 0 ? part : `  ${part}`)),
  );
  return `${[paint.dim(heading), ...wrapped].join("\n")}\n`;
}

function more(count: number, shown: number, noun: string): string {
  return count <= shown ? "" : `and ${plural(count - shown, noun)} more\n`;
}
