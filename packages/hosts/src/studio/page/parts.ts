import { describeDuration } from "@retinue/core/inspection/describe-duration.ts";
import type { InFlight } from "@retinue/core/inspection/inspection.ts";
import type { Bar, BarKind, TimeAxis } from "@retinue/core/inspection/time-axis.ts";
import type { OverviewAgent } from "@retinue/core/kernel/live/session-overview.ts";
import { Component, type ComponentChild, h } from "preact";

/** Small parts that several screens show. */

/** A part that is drawn again only when one of its properties is another one. */
export function memo<Props extends object>(
  render: (props: Props) => ComponentChild,
): new (
  props: Props,
) => Component<Props> {
  return class extends Component<Props> {
    override shouldComponentUpdate(next: Readonly<Props>): boolean {
      // Both have the properties of the same type.
      return Object.entries(next).some(([name, value]) => value !== this.props[name as keyof Props]);
    }

    override render(): ComponentChild {
      return render(this.props);
    }
  };
}

export function Badge({ state }: { state: string }): ComponentChild {
  return h("span", { class: `badge ${state}` }, state);
}

export function Problem({ text }: { text: string | undefined }): ComponentChild {
  return text === undefined ? null : h("p", { class: "problem", role: "alert" }, text);
}

export function Figures({ rows }: { rows: readonly (readonly [string, string])[] }): ComponentChild {
  return h(
    "dl",
    { class: "figures" },
    rows.map(([name, value]) => h("div", { key: name }, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** What an agent is called by people: its task, then its name or type. */
export function labelOf({ id, description, name, agentType }: OverviewAgent): string {
  if (id === "main") return "Main agent";
  return description === "" ? (name ?? agentType) : description;
}

export function describeInFlight(inFlight: readonly InFlight[], now: number): string {
  return inFlight
    .map((one) => {
      const since = one.since === undefined ? "" : ` for ${describeDuration(Math.max(0, now - one.since))}`;
      return one.type === "model"
        ? `waiting for the model${since}`
        : `${one.tool} ${one.about}${since}`.trim();
    })
    .join(", ");
}

export function ago(at: number): string {
  const seconds = Math.max(0, Math.round((Date.now() - at) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(at).toLocaleDateString();
}

export function Table(props: {
  caption: string;
  heads: readonly string[];
  rows: readonly (readonly string[])[];
}): ComponentChild {
  const { caption, heads, rows } = props;
  if (rows.length === 0) return null;
  const table = h(
    "table",
    {},
    h("caption", {}, caption),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        heads.map((head) => h("th", { key: head, scope: "col" }, head)),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row, at) =>
        h(
          "tr",
          { key: at },
          row.map((cell, column) => h("td", { key: column }, cell)),
        ),
      ),
    ),
  ); // What is wider than the screen is scrolled, so that no word breaks and nothing is cut off.
  return h("div", { class: "wide", role: "region", "aria-label": caption, tabIndex: 0 }, table);
}

const width = 1000;
const least = 2;
/** Below the others is what took long, so that short failures are seen. */
const order: readonly BarKind[] = ["other", "model", "tool", "failed", "refused"];

/** What an agent did when, on the axis that all agents share. Decoration: the same is in the row's words. */
export const Timeline = memo(drawTimeline);

function drawTimeline({ bars, axis }: { bars: readonly Bar[]; axis: TimeAxis }): ComponentChild {
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
