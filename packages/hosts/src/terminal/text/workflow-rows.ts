import {
  type WorkflowRunState,
  type WorkflowStep,
  workflowTotals,
} from "@retinue/core/protocol/workflow-state.ts";
import { formatCost, formatDuration, formatTokens, plural } from "../../shared/format.ts";
import { cutRow, cutText, padRow, type Row, rowWidth, span } from "../screen/row.ts";
import { bold, colours, dim, type Style } from "../screen/style.ts";

interface WorkflowRowOptions {
  readonly width: number;
  readonly now: number;
  /** Beyond so many rows, phases that are done are left out first. */
  readonly maxRows: number;
}

/** A run that works: one row for the whole, and one for each phase. */
export function workflowRows(
  run: WorkflowRunState,
  { width, now, maxRows }: WorkflowRowOptions,
): readonly Row[] {
  const { agents, done, tokens, costUsd } = workflowTotals(run);
  const elapsed = Math.max(0, now - run.startedAt);
  const figures = [
    agents === 0 ? "starts" : `${done} of ${plural(agents, "agent")} done`,
    costUsd === 0 ? "" : formatCost(costUsd),
    tokens === 0 ? "" : formatTokens(tokens),
    formatDuration(elapsed),
    leftText(run, elapsed),
  ];
  const head = cutRow(
    [span("  ▸ ", colours.accent), span(run.name, bold), span(`  ${joined(figures)}`, dim)],
    width,
  );
  const phases = phasesOf(run);
  const room = Math.max(1, maxRows - 1);
  const open = phases.filter(({ steps }) => steps.some(isOpen));
  const shown =
    phases.length <= room
      ? phases
      : [...open, ...phases.filter((phase) => !open.includes(phase))].slice(0, room);
  const inOrder = phases.filter((phase) => shown.includes(phase));
  const titleWidth = Math.min(
    Math.max(10, Math.floor(width / 3)),
    Math.max(0, ...inOrder.map(({ title }) => title.length)),
  );
  return [
    head,
    ...inOrder.map((phase, at) => phaseRow(phase, { width, titleWidth, isLast: at === inOrder.length - 1 })),
  ];
}

/** What stays of a run when it has ended: a row, and one more where it went wrong. */
export function endedWorkflowRows(run: WorkflowRunState, width: number): readonly Row[] {
  const { status, name, startedAt, endedAt = startedAt, error, errorLine } = run;
  const { agents, taken, tokens, costUsd, done, skipped } = workflowTotals(run);
  const failed = agents - done - skipped;
  const figures = [
    plural(agents, "agent"),
    taken === 0 ? "" : `${taken} from the journal`,
    failed === 0 ? "" : `${failed} failed`,
    tokens === 0 ? "" : formatTokens(tokens),
    costUsd === 0 ? "" : formatCost(costUsd),
    formatDuration(endedAt - startedAt),
  ];
  const isGood = status === "completed";
  const why = [error ?? "", errorLine === undefined ? "" : `line ${errorLine}`].filter((part) => part !== "");
  const advice = isGood ? "" : `retinue workflow resume ${run.runId} continues it`;
  const more = [...why, advice].filter((part) => part !== "").join("; ");
  return [
    cutRow(
      [
        isGood ? span("✓ ", colours.good) : span("✗ ", status === "failed" ? colours.error : colours.warning),
        span(name, bold),
        span(isGood ? " workflow" : ` workflow ${status === "killed" ? "stopped" : status}`),
        span(`  ${joined(figures)}`, dim),
      ],
      width,
    ),
    ...(isGood
      ? []
      : [cutRow([span(`  ${more}`, status === "failed" ? colours.error : colours.warning)], width)]),
  ];
}

interface ShownPhase {
  readonly title: string;
  readonly steps: readonly WorkflowStep[];
}

/** The phases in the order in which they began, and steps of none in front. */
function phasesOf({ phases, steps }: WorkflowRunState): readonly ShownPhase[] {
  const titles = [
    ...new Set([...phases.map(({ title }) => title), ...steps.flatMap(({ phase }) => phase ?? [])]),
  ];
  const without = steps.filter(({ phase }) => phase === undefined);
  return [
    ...(without.length === 0 ? [] : [{ title: titles.length === 0 ? "agents" : "no phase", steps: without }]),
    ...titles.map((title) => ({ title, steps: steps.filter(({ phase }) => phase === title) })),
  ];
}

function isOpen({ state }: WorkflowStep): boolean {
  return state === "running" || state === "waiting";
}

function phaseRow(
  { title, steps }: ShownPhase,
  {
    width,
    titleWidth,
    isLast,
  }: { readonly width: number; readonly titleWidth: number; readonly isLast: boolean },
): Row {
  const count = (state: WorkflowStep["state"]): number => steps.filter((step) => step.state === state).length;
  const taken = steps.filter((step) => step.taken === true).length;
  const counts = (
    [
      [count("done"), "done", colours.good],
      [count("running"), "running", colours.accent],
      [count("failed"), "failed", colours.error],
      [count("skipped"), "skipped", dim],
      [count("waiting"), "waiting", dim],
    ] as const
  ).filter(([number]) => number > 0);
  const own = steps.filter((step) => step.taken !== true);
  const cost = own.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0);
  const right: Row = cost === 0 ? [] : [span(`  ${formatCost(cost)}`, dim)];
  const cells: Row = counts.flatMap(([number, word, style]: readonly [number, string, Style], at) => [
    span(at === 0 ? "" : " · ", dim),
    span(`${number} ${word}`, style),
  ]);
  const left: Row = [
    span(isLast ? "    └ " : "    ├ ", dim),
    ...padRow([span(cutText(title, titleWidth))], titleWidth),
    span("  "),
    ...(cells.length === 0 ? [span("begins", dim)] : cells),
    ...(taken === 0 ? [] : [span(` (${taken} from the journal)`, dim)]),
  ];
  const room = width - rowWidth(right);
  return [...padRow(cutRow(left, room), room), ...right];
}

/** By the quote that was made before the start; nothing where there is none, or where it is over. */
function leftText({ quote }: WorkflowRunState, elapsed: number): string {
  const left = (quote?.durationMs.likely ?? 0) - elapsed;
  if (quote === undefined) return "";
  return left > 0 ? `about ${formatDuration(roundUp(left))} left` : "longer than quoted";
}

/** Seconds of a guess would only flicker. */
function roundUp(milliseconds: number): number {
  const unit = milliseconds > 60_000 ? 60_000 : 10_000;
  return Math.ceil(milliseconds / unit) * unit;
}

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" · ");
}
