import { describeDuration } from "@retinue/core/inspection/describe-duration.ts";
import type { InFlight } from "@retinue/core/inspection/inspection.ts";
import type { OverviewAgent } from "@retinue/core/kernel/live/session-overview.ts";
import { Component, type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import { type Place, sessionLink } from "./route.ts";

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

/** Where a screen of a session is: the session, then what of it. */
export function Breadcrumb(props: { place: Place; title: string | undefined; here: string }): ComponentChild {
  const { place, title, here } = props;
  return h(
    "nav",
    { class: "path", "aria-label": "Breadcrumb" },
    h("a", { class: "up clip", href: sessionLink(place) }, title ?? "Session"),
    h("span", { "aria-hidden": true }, "›"),
    h("span", { class: "clip", "aria-current": "page" }, here),
  );
}

/** Figures of the head of a screen. */
export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChild])[] }): ComponentChild {
  return h(
    "div",
    { class: "kv" },
    facts.map(([name, value]) => h("div", { key: name }, h("span", {}, name), " ", h("b", {}, value))),
  );
}

/** Commands to continue with in a terminal, each to be copied. */
export function Commands({
  label,
  commands,
}: {
  label: string;
  commands: readonly string[];
}): ComponentChild {
  if (commands.length === 0) return null;
  return h(
    "div",
    { class: "commands" },
    h("p", { class: "dim" }, label),
    commands.map((command) => h(Command, { key: command, command })),
  );
}

function Command({ command }: { command: string }): ComponentChild {
  const [label, setLabel] = useState("Copy");
  const copy = async (): Promise<void> => {
    // Where the page may not write there, as in a file, it says so.
    const isCopied = await navigator.clipboard.writeText(command).then(
      () => true,
      () => false,
    );
    setLabel(isCopied ? "Copied" : "Select it");
  };
  return h(
    "div",
    { class: "command" },
    h("code", {}, command),
    h(
      "button",
      { class: "btn ghost", type: "button", "aria-label": `Copy ${command}`, onClick: () => void copy() },
      label,
    ),
  );
}

/** What an agent is called by people: its task, then its name or type. */
export function labelOf({ id, description, name, agentType }: OverviewAgent): string {
  if (id === "main") return "Main agent";
  return description === "" ? (name ?? agentType) : description;
}

export function describeInFlight(inFlight: readonly InFlight[], now: number): string {
  const started = inFlight.filter((one) => one.type === "call" && agentTools.has(one.tool));
  if (started.length > 1 && started.length === inFlight.length) return `Waits for ${started.length} agents`;
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

/** A count, money, a time, or nothing of them. */
function isNumber(cell: string): boolean {
  return /^(?:|[−-]?\$?[\d.,:]+\s?(?:k|M|ms|s|d|h|%)?)$/.test(cell);
}

const agentTools: ReadonlySet<string> = new Set(["Agent", "Task"]);

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
        heads.map((head, column) =>
          h(
            "th",
            { key: head, scope: "col", class: rows.every((row) => isNumber(row[column] ?? "")) ? "num" : "" },
            head,
          ),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row, at) =>
        h(
          "tr",
          { key: at },
          row.map((cell, column) => h("td", { key: column, class: isNumber(cell) ? "num" : "" }, cell)),
        ),
      ),
    ),
  ); // What is wider than the screen is scrolled, so that no word breaks and nothing is cut off.
  return h("div", { class: "wide", role: "region", "aria-label": caption, tabIndex: 0 }, table);
}
