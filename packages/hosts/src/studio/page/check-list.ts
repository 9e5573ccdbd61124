import { type CheckRun, whyFailed } from "@retinue/core/conversation/receipt.ts";
import { type ComponentChild, h } from "preact";
import { duration } from "./format.ts";
import { StateSign } from "./icons.ts";

/** Of a receipt or of a merge; an inspection keeps less of one. */
type ShownCheck = Pick<CheckRun, "run" | "passed" | "exitCode" | "reason"> &
  Partial<Pick<CheckRun, "kind" | "output" | "durationMs" | "notRun">> & {
    readonly flaky?: boolean | CheckRun["flaky"];
  };

/** Checks that the runtime ran, each with how it ended; the output of one that failed is a click away. */
export function CheckList({ checks }: { checks: readonly ShownCheck[] }): ComponentChild {
  if (checks.length === 0) return null;
  return h(
    "ul",
    { class: "checks" },
    checks.map((check) => h(Check, { key: `${check.kind ?? ""} ${check.run}`, check })),
  );
}

function Check({ check }: { check: ShownCheck }): ComponentChild {
  const { run, kind, passed, notRun, output = "", durationMs, flaky } = check;
  const how = passed ? "passed" : "failed";
  const facts = [`${how}${whyFailed(check)}`, duration(durationMs)].filter(Boolean).join(" · ");
  return h(
    "li",
    {},
    h(
      "div",
      { class: "row" },
      h(StateSign, { state: passed ? "completed" : "failed" }),
      h("code", { class: "grow clip", title: run }, kind === "output" ? "the form of the result" : run),
    ),
    h("p", { class: passed ? "dim" : "st-bad" }, notRun === true ? `not run: ${facts}` : facts),
    flaky === undefined || flaky === false
      ? null
      : h("p", { class: "st-wait" }, "flaky: it failed before it passed, on the same tree"),
    passed || output.trim() === ""
      ? null
      : h(
          "details",
          {},
          h("summary", {}, "Output"),
          h("pre", { class: "out", tabIndex: 0, role: "group", "aria-label": `Output of ${run}` }, output),
        ),
  );
}

const states: Readonly<Record<string, string>> = { verified: "completed", "failed-check": "failed" };

/** What the checks add up to, as a sign with a word. */
export function ReceiptChip({ status }: { status: string }): ComponentChild {
  const state = states[status] ?? "stopped";
  return h("span", { class: `chip of-${state}` }, h(StateSign, { state }), status);
}
