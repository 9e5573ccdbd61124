import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { firstLine, formatCost, formatDuration, formatTokens } from "../../shared/format.ts";
import { cutRow, cutText, padRow, type Row, rowWidth, span, textWidth } from "../screen/row.ts";
import { agentColour, bold, colours, combine, dim, inverse, plain } from "../screen/style.ts";
import type { AgentSnapshot, ToolCall, ToolResult } from "../session/terminal-session.ts";

export interface AgentRowOptions {
  readonly width: number;
  readonly now: number;
  /** Agents that wait for an answer of the person. */
  readonly asking: ReadonlySet<string>;
  readonly selected?: string | undefined;
}

export function isRunning({ state }: AgentSnapshot): boolean {
  return state === "running" || state === "queued";
}

/** One line for each agent; a narrow window drops columns, never the name or what the agent does. */
export function agentRows(agents: readonly AgentSnapshot[], options: AgentRowOptions): readonly Row[] {
  const { width, now, asking, selected } = options;
  const cells = agents.map((agent, at) => ({
    agent,
    branch: at === agents.length - 1 ? "  └ " : "  ├ ",
    name: `${indent(agent)}${agent.name}`,
    description: agent.description,
    activity: activityOf(agent, asking.has(agent.id)),
    tokens: agent.tokens === 0 ? "" : formatTokens(agent.tokens),
    cost: agent.costUsd === undefined || agent.costUsd === 0 ? "" : formatCost(agent.costUsd),
    time: formatDuration((agent.endedAt ?? now) - agent.startedAt),
  }));
  const most = (key: "name" | "description" | "tokens" | "cost" | "time", limit: number): number =>
    Math.min(limit, Math.max(0, ...cells.map((cell) => textWidth(cell[key]))));
  const sizes = {
    name: most("name", 18),
    description: most("description", Math.max(24, Math.min(60, Math.floor(width * 0.3)))),
    tokens: most("tokens", 6),
    cost: most("cost", 8),
    time: most("time", 12),
  };
  // The activity needs room; columns go in the order of how little they are missed.
  const columns = new Set<ColumnName>(["description", "tokens", "cost", "time"]);
  const taken = (): number => 6 + sizes.name + [...columns].reduce((sum, key) => sum + sizes[key] + 2, 0);
  for (const key of ["cost", "description", "tokens", "time"] as const) {
    if (width - taken() >= 20) break;
    columns.delete(key);
  }
  return cells.map((cell) => {
    const isSelected = cell.agent.id === selected;
    const mark = isSelected ? inverse : plain;
    const left: Row = [
      span(cell.branch, dim),
      ...padRow(
        [span(cutText(cell.name, sizes.name), combine(agentColour(cell.agent.colour) | bold, mark))],
        sizes.name,
      ),
      ...(columns.has("description")
        ? [span("  "), ...padRow(cutRow([span(cell.description, dim)], sizes.description), sizes.description)]
        : []),
    ];
    const right: Row = (["tokens", "cost", "time"] as const)
      .filter((key) => columns.has(key) && sizes[key] > 0)
      .map((key) => span(`  ${cell[key].padStart(sizes[key])}`, dim));
    const room = width - rowWidth(left) - rowWidth(right) - 2;
    const isAsking = asking.has(cell.agent.id);
    const activity = padRow(cutRow([span(cell.activity, isAsking ? colours.warning : plain)], room), room);
    return [...left, span("  "), ...activity, ...right];
  });
}

/** Two columns for each level below the children of the main agent. */
function indent({ depth = 1 }: AgentSnapshot): string {
  return "  ".repeat(Math.min(depth, maxIndent) - 1);
}

const maxIndent = 5;

type ColumnName = "description" | "tokens" | "cost" | "time";

function activityOf({ state, activity, isBackground }: AgentSnapshot, isAsking: boolean): string {
  if (isAsking) return "waiting for an answer ▲";
  if (state === "queued") return "waiting for a place";
  const words = activity === "" ? state : activity;
  return isBackground ? `${words} (background)` : words;
}

/** The line that stays of an agent when it has ended. */
export function endedAgentRows(agent: AgentSnapshot, width: number): readonly Row[] {
  const { state, name, colour, description, tokens, costUsd, startedAt, endedAt, reason } = agent;
  const isGood = state === "completed";
  const totals = [
    tokens === 0 ? "" : formatTokens(tokens),
    costUsd === undefined || costUsd === 0 ? "" : formatCost(costUsd),
    endedAt === undefined ? "" : formatDuration(endedAt - startedAt),
  ].filter((part) => part !== "");
  const word = isGood ? "" : `${state}${reason === undefined ? "" : `: ${reason}`}`;
  return [
    cutRow(
      [
        span(indent(agent)),
        isGood ? span("✓ ", colours.good) : span(state === "partial" ? "◆ " : "✗ ", colours.warning),
        span(name, combine(bold, agentColour(colour))),
        span(` ${description}`),
        span(`  ${totals.join(" · ")}`, dim),
      ],
      width,
    ),
    ...(word === ""
      ? []
      : [cutRow([span(`  ${word}`, state === "failed" ? colours.error : colours.warning)], width)]),
  ];
}

/** An agent of an earlier start of the conversation, of which only its call and its result are at hand. */
export function earlierAgentRow({ input }: ToolCall, { text, isError }: ToolResult, width: number): Row {
  const { subagent_type: type = "agent", description = "" } = isRecord(input) ? input : {};
  return cutRow(
    [
      isError ? span("✗ ", colours.warning) : span("✓ ", colours.good),
      span(String(type), bold),
      span(` ${String(description)}`),
      span(`  ${firstLine(text)}`, dim),
    ],
    width,
  );
}
