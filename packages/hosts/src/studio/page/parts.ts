import { describeDuration } from "@retinue/core/inspection/describe-duration.ts";
import type { InFlight } from "@retinue/core/inspection/inspection.ts";
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
  return h("span", { class: `chip of-${state}` }, state);
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
      if (one.type === "model" && one.quota !== undefined)
        return `waiting-for-quota of ${one.quota.provider} until ${new Date(one.quota.until).toLocaleString()}`;
      return one.type === "model"
        ? `waiting for the model${since}`
        : `${one.tool} ${one.about}${since}`.trim();
    })
    .join(", ");
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
