import { type ComponentChild, h } from "preact";
import type { Bar, BarKind, TimeAxis } from "../../../inspection/time-axis.ts";

const width = 1000;
const least = 2;
/** Below the others is what took long, so that short failures are seen. */
const order: readonly BarKind[] = ["other", "model", "tool", "failed", "refused"];

/** What an agent did when, on the axis that all agents share. Decoration: the same is in the row's words. */
export function Timeline({ bars, axis }: { bars: readonly Bar[]; axis: TimeAxis }): ComponentChild {
  if (axis.durationMs === 0) return null;
  const scale = width / axis.durationMs;
  const sorted = bars.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  return h(
    "svg",
    { viewBox: `0 0 ${width} 10`, preserveAspectRatio: "none", "aria-hidden": true },
    sorted.map((bar, at) => {
      const from = axis.place(bar.from) * scale;
      const length = Math.max(axis.place(bar.to) * scale - from, least);
      return h("rect", {
        key: at,
        class: bar.kind,
        x: from.toFixed(1),
        width: length.toFixed(1),
        height: 10,
      });
    }),
  );
}
