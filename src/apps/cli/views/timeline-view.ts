import type { InspectedAgent } from "../../../inspection/inspection.ts";
import { type BarKind, barsOf, createTimeAxis, type TimeAxis } from "../../../inspection/time-axis.ts";
import type { Paint } from "./colour.ts";
import { cutTo, stripControlCharacters, pad } from "./text-width.ts";

const labelWidth = 20;
const marks: Readonly<Record<BarKind, string>> = {
  model: "█",
  tool: "▒",
  failed: "x",
  refused: "!",
  other: "·",
};

export interface TimelineOptions {
  readonly paint: Paint;
  readonly width: number;
}

/** One row of cells for each agent, all on the same axis. */
export function renderTimeline(
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

export const timelineLegend = `${marks.model} model  ${marks.tool} tool  ${marks.failed} failed  ${marks.refused} refused  ${marks.other} neither`;

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
