import type { InspectedAgent, Span, Step } from "./inspection.ts";
import { mergeSpans } from "./run-clock.ts";
import { spanOf } from "./totals-of.ts";

/** The time in which any agent worked, without the pauses between. */
export interface TimeAxis {
  readonly durationMs: number;
  /** Milliseconds of work before this moment. */
  place(at: number): number;
  /** The moment behind so many milliseconds of work; where a pause was, the end of it. */
  timeOf(work: number): number;
}

export function createTimeAxis(agents: readonly Pick<InspectedAgent, "runs">[]): TimeAxis {
  const spans = mergeSpans(agents.flatMap(({ runs }) => runs));
  let durationMs = 0;
  const placed = spans.map((span) => {
    const start = durationMs;
    durationMs += span.to - span.from;
    return { ...span, start };
  });
  return {
    durationMs,
    place(at) {
      const span = placed[lastIndexUpTo(placed, at, "from")];
      return span === undefined ? 0 : span.start + Math.min(at, span.to) - span.from;
    },
    timeOf(work) {
      const span = placed[Math.max(0, lastIndexUpTo(placed, work, "start"))];
      return span === undefined ? 0 : Math.min(span.to, span.from + Math.max(0, work - span.start));
    },
  };
}

export type BarKind = "model" | "tool" | "failed" | "refused" | "other";

export interface Bar extends Span {
  readonly kind: BarKind;
}

/** What an agent did when, on the axis; runs as a whole lie below what filled them. */
export function barsOf(
  { runs, steps }: Pick<InspectedAgent, "runs" | "steps">,
  axis: TimeAxis,
): readonly Bar[] {
  const place = (span: Span, kind: BarKind): Bar => ({
    kind,
    from: axis.place(span.from),
    to: axis.place(span.to),
  });
  return [
    ...runs.map((run) => place(run, "other")),
    ...steps.flatMap((step) => spanOf(step).map((span) => place(span, kindOf(step)))),
  ];
}

function kindOf(step: Step): BarKind {
  if (step.type !== "call") return "model";
  return step.outcome === "refused" || step.outcome === "failed" ? step.outcome : "tool";
}

/** By halving: an axis may have as many spans as there were prompts. */
function lastIndexUpTo<Key extends string>(
  spans: readonly Readonly<Record<Key, number>>[],
  at: number,
  key: Key,
): number {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((spans[middle]?.[key] ?? Number.POSITIVE_INFINITY) <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
