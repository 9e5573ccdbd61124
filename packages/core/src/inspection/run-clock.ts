import type { Span } from "./inspection.ts";

/** Finds the stretches of work among the times of lines, so that nights between two prompts do not count. */
export interface RunClock {
  onEvent(at: number | undefined): void;
  /** What comes next begins a new stretch. */
  end(): void;
  /** The last event has started a new stretch. */
  endBeforeLast(): void;
  spans(until?: number): readonly Span[];
}

export function createRunClock(): RunClock {
  const closed: Span[] = [];
  let open: Span | undefined;
  let before: Span | undefined;
  let last = 0;
  return {
    onEvent(at) {
      if (at === undefined) return;
      before = open;
      last = at;
      open =
        open === undefined
          ? { from: at, to: at }
          : { from: Math.min(open.from, at), to: Math.max(open.to, at) };
    },
    end() {
      if (open !== undefined) closed.push(open);
      open = undefined;
      before = undefined;
    },
    endBeforeLast() {
      if (before === undefined) return;
      closed.push(before);
      open = { from: last, to: last };
      before = undefined;
    },
    spans(until) {
      if (open === undefined) return [...closed];
      return [...closed, { from: open.from, to: Math.max(open.to, until ?? open.to) }];
    },
  };
}

/** How long at least one of the spans lasted. */
export function unionMs(spans: readonly Span[]): number {
  let sum = 0;
  let end = Number.NEGATIVE_INFINITY;
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from)) {
    sum += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return sum;
}

/** Spans that touch or overlap as one, in order. */
export function mergeSpans(spans: readonly Span[]): readonly Span[] {
  return spans
    .toSorted((a, b) => a.from - b.from)
    .reduce<Span[]>((merged, span) => {
      const last = merged.at(-1);
      if (last === undefined || span.from > last.to) merged.push(span);
      else merged[merged.length - 1] = { from: last.from, to: Math.max(last.to, span.to) };
      return merged;
    }, []);
}
