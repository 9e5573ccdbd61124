import { plural } from "@retinue/base/foundation/diagnostic.ts";
import {
  allTokens,
  describeCost,
  describeDuration,
  describeOffset,
  describeTokens,
  describeTotalCost,
} from "@retinue/core/inspection/describe-duration.ts";
import { describeBasis, describeQuoted } from "@retinue/core/inspection/describe-quote.ts";
import { describeStep } from "@retinue/core/inspection/describe-step.ts";
import {
  type InFlight,
  type InspectedAgent,
  type InspectedReceipt,
  type Inspection,
  type Refusal,
  type Step,
  teamLines,
} from "@retinue/core/inspection/inspection.ts";
import { type BarKind, barsOf, createTimeAxis, type TimeAxis } from "@retinue/core/inspection/time-axis.ts";
import { untilText } from "../../shared/debug-line.ts";
import type { Paint } from "../../shared/paint.ts";
import { cutTo, pad, stripControlCharacters, wrap } from "../../shared/strip-control-characters.ts";
import { type Column, renderTable } from "./render-table.ts";

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
    ...renderTeam(inspection, options),
    renderList("REFUSED", inspection.refusals.slice(0, maxRefusals).map(refusalLine), options),
    renderList("QUOTED AND REAL", quotedLines(inspection), options),
    renderList("IN FLIGHT", agents.flatMap(inFlightLines), options),
    renderList("NOTES", inspection.notes, options),
    ...(options.steps ? agents : [only === undefined ? [] : (focus ?? [])].flat()).map((agent) =>
      renderAgentSteps(agent, options),
    ),
  ];
  return sections.filter((section) => section !== "").join("\n");
}

/** What was expected of each agent before it started, and what it took. */
function quotedLines({ agents, quotes }: Inspection): readonly string[] {
  const quoted = agents.flatMap(({ id, agentType, quote }) =>
    quote === undefined
      ? []
      : [`${id} ${agentType}: ${describeQuoted(quote)} (${describeBasis(quote.basis)})`],
  );
  const left = quoted.length - maxAgents;
  return [
    ...(quotes === undefined ? [] : [`${quotes.inside} of ${quotes.of} inside the quoted range`]),
    ...quoted.slice(0, maxAgents),
    ...(left > 0 ? [`and ${left} more`] : []),
  ];
}

const maxTeamEvents = 60;

function renderTeam({ team }: Inspection, options: InspectionViewOptions): readonly string[] {
  if (team === undefined) return [];
  const { standing, events } = teamLines(team);
  return [
    renderList(`TEAM ${team.name}`, standing, options),
    renderList("MAIL AND BOARD", events.slice(-maxTeamEvents), options),
  ];
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
      describeCost(totals.costUsd),
      description,
    ].map(stripControlCharacters);
  });
  return renderTable({ columns: agentColumns, rows, width, paint }) + more(agents.length, maxAgents, "agent");
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
  const rows = byModel.map(({ model, turns, usage, costUsd: cost, modelMs }) => [
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
  if (open.type === "model" && open.quota !== undefined)
    return `waiting-for-quota of ${open.quota.provider} ${untilText(open.quota.until)}`;
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

const maxText = 6;

/** What one agent did, step by step, one line each, then what it said last. */
function renderAgentSteps(
  agent: InspectedAgent,
  { paint, width }: { readonly paint: Paint; readonly width: number },
): string {
  const { id, agentType, steps, startedAt = 0, receipt, result } = agent;
  const heading = id === "main" ? "STEPS OF main" : `STEPS OF ${id} (${agentType})`;
  const lines = steps.map((step) => renderStep(step, startedAt, { paint, width }));
  const checked = receipt === undefined ? [] : renderReceipt(receipt, { paint, width });
  const lastMessage = result === undefined ? [] : [paint.dim("LAST MESSAGE"), ...firstLines(result, width)];
  return `${[paint.dim(cutTo(stripControlCharacters(heading), width)), ...lines, ...checked, ...lastMessage].join("\n")}\n`;
}

const maxFiles = 5;

/** Each check with what it wrote last where it failed, then what was changed and the notes. */
function renderReceipt(
  { status, tree, retries, checks, changedFiles, notes }: InspectedReceipt,
  { paint, width }: { readonly paint: Paint; readonly width: number },
): readonly string[] {
  if (checks.length === 0 && notes.length === 0) return [];
  const on = tree === undefined ? "" : ` on tree ${tree.slice(0, 12)}`;
  const again = retries === 0 ? "" : `, ${plural(retries, "failed round")} given back`;
  const shown = checks.flatMap(({ run, passed, exitCode, reason, durationMs, output, flaky }) => {
    const why = reason ?? (exitCode === undefined ? undefined : `exit code ${exitCode}`);
    const facts = [
      ...(durationMs === undefined ? [] : [describeDuration(durationMs)]),
      ...(passed || why === undefined ? [] : [why]),
      ...(flaky ? ["flaky: it failed before on the same tree"] : []),
    ];
    const line = stripControlCharacters(`${run} (${facts.join("; ")})`);
    const lead = passed ? paint.good("  passed  ") : paint.error("  failed  ");
    const [first = "", ...rest] = wrap(line, width - 10);
    const last = passed ? [] : lastLines(output, width - 12);
    return [
      `${lead}${first}`,
      ...[...rest, ...last.map((text) => `  ${text}`)].map((text) => `          ${text}`),
    ];
  });
  const more = changedFiles.length > maxFiles ? ` and ${changedFiles.length - maxFiles} more` : "";
  const changed =
    changedFiles.length === 0 ? [] : [`changed ${changedFiles.slice(0, maxFiles).join(", ")}${more}`];
  return [
    paint.dim("CHECKS"),
    `  ${stripControlCharacters(status)}${on}${again}`,
    ...shown,
    ...[...changed, ...notes]
      .flatMap((text) => wrap(stripControlCharacters(text), width - 2))
      .map((text) => `  ${text}`),
  ];
}

function lastLines(text: string, width: number): readonly string[] {
  const lines = text.split("\n").flatMap((line) => wrap(stripControlCharacters(line), width));
  return lines.slice(-maxText).filter((line) => line !== "");
}

function renderStep(
  step: Step,
  start: number,
  { paint, width }: { readonly paint: Paint; readonly width: number },
): string {
  const { what, detail, isBad } = describeStep(step);
  const offset = step.at === undefined ? "?" : describeOffset(step.at - start);
  const duration = "durationMs" in step ? describeDuration(step.durationMs) : "";
  const lead = `${offset.padStart(7)} ${duration.padStart(9)}  `;
  const name = pad(cutTo(stripControlCharacters(what), 14), 14);
  const rest = cutTo(stripControlCharacters(detail), Math.max(8, width - lead.length - 15));
  return `${paint.dim(lead)}${isBad ? paint.error(name) : paint.name(name)} ${rest}`.trimEnd();
}

function firstLines(text: string, width: number): readonly string[] {
  const lines = text
    .split("\n")
    .flatMap((line) => wrap(stripControlCharacters(line), width - 2))
    .map((line) => `  ${line}`.trimEnd());
  return lines.length <= maxText ? lines : [...lines.slice(0, maxText), "  …"];
}

const labelWidth = 20;
const marks: Readonly<Record<BarKind, string>> = {
  model: "█",
  tool: "▒",
  failed: "x",
  refused: "!",
  other: "·",
};

interface TimelineOptions {
  readonly paint: Paint;
  readonly width: number;
}

/** One row of cells for each agent, all on the same axis. */
function renderTimeline(
  agents: readonly InspectedAgent[],
  { paint, width }: TimelineOptions,
): readonly string[] {
  const axis = createTimeAxis(agents);
  const room = Math.max(10, width - labelWidth - 2);
  return agents.map((agent) => {
    const label = agent.id === "main" ? "main" : `${" ".repeat(agent.depth)}${agent.agentType}`;
    const cells = cellsOf(agent, axis, room).map((kind) => (kind === undefined ? " " : mark(kind, paint)));
    return `${pad(cutTo(stripControlCharacters(label), labelWidth), labelWidth)}  ${cells.join("").trimEnd()}`;
  });
}

const timelineLegend = `${marks.model} model  ${marks.tool} tool  ${marks.failed} failed  ${marks.refused} refused  ${marks.other} neither`;

function mark(kind: BarKind, paint: Paint): string {
  if (kind === "model") return paint.name(marks.model);
  if (kind === "tool") return paint.good(marks.tool);
  return kind === "other" ? paint.dim(marks.other) : paint.error(marks[kind]);
}

/** Each cell shows what took most of it; a call that was refused or failed shows, however short it was. */
function cellsOf(agent: InspectedAgent, axis: TimeAxis, count: number): readonly (BarKind | undefined)[] {
  const cellMs = axis.durationMs / count;
  const cells = Array.from({ length: count }, () => new Map<BarKind, number>());
  for (const { kind, from, to } of barsOf(agent, axis)) {
    const first = cellMs === 0 ? 0 : Math.min(count - 1, Math.floor(from / cellMs));
    const last = cellMs === 0 ? 0 : Math.min(count - 1, Math.max(first, Math.ceil(to / cellMs) - 1));
    for (let at = first; at <= last; at += 1) {
      const overlap = Math.min(to, (at + 1) * cellMs) - Math.max(from, at * cellMs);
      const cell = cells[at];
      cell?.set(kind, (cell.get(kind) ?? 0) + Math.max(0, overlap));
    }
  }
  return cells.map(strongest);
}

function strongest(cell: ReadonlyMap<BarKind, number>): BarKind | undefined {
  if (cell.has("refused")) return "refused";
  if (cell.has("failed")) return "failed";
  const [model, tool] = [cell.get("model"), cell.get("tool")];
  if (model === undefined && tool === undefined) return cell.has("other") ? "other" : undefined;
  const [filled, other] = [(model ?? 0) + (tool ?? 0), cell.get("other") ?? 0];
  if (other > filled * 2) return "other";
  return (model ?? -1) >= (tool ?? -1) ? "model" : "tool";
}
