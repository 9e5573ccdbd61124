import { type ComponentChild, h } from "preact";
import { describeDuration } from "../../../inspection/describe-duration.ts";
import type { InFlight } from "../../../inspection/inspection.ts";
import type { OverviewAgent } from "../session-overview.ts";

/** Small parts that several screens show. */

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
  return h(
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
  );
}
