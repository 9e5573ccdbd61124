import {
  allTokens,
  describeCost,
  describeDuration,
  describeTokens,
  describeTotalCost,
} from "@retinue/core/inspection/describe-duration.ts";
import { createTimeAxis } from "@retinue/core/inspection/time-axis.ts";
import { type ComponentChild, h } from "preact";
import { Table } from "./parts.ts";
import { type Place, sessionLink } from "./route.ts";
import { Shell } from "./shell.ts";
import { type SessionView, useSession } from "./use-events.ts";

/** Two sessions side by side. */
export function CompareScreen({ left, right }: { left: Place; right: Place }): ComponentChild {
  const a = useSession(left);
  const b = useSession(right);
  const around = { active: "sessions", inbox: a.state?.inbox, problem: a.problem ?? b.problem } as const;
  const [one, other] = [a.state?.session, b.state?.session];
  if (one === undefined || other === undefined)
    return h(
      Shell,
      around,
      around.problem === undefined
        ? h("p", { class: "wrap dim", role: "status" }, "Reading the sessions…")
        : null,
    );
  const views = [one, other] as const;
  return h(
    Shell,
    around,
    h(
      "div",
      { class: "wrap" },
      h("h1", {}, "Two sessions"),
      h(
        "ul",
        { class: "plain-l" },
        [left, right].map((place, at) =>
          h(
            "li",
            { key: at },
            `${at === 0 ? "A" : "B"}: `,
            h(
              "a",
              { class: "link", href: sessionLink(place) },
              views[at]?.overview.session.title ?? place.id,
            ),
          ),
        ),
      ),
      h(Table, { caption: "Figures", heads: ["Figure", "A", "B"], rows: figureRows(...views) }),
      h(Table, {
        caption: "By model: tokens and cost",
        heads: ["Model", "A", "B"],
        rows: pairs(views.map(tokensByModel)),
      }),
      h(Table, {
        caption: "By tool: calls",
        heads: ["Tool", "A", "B"],
        rows: pairs(views.map(callsByTool)),
      }),
      h(Table, {
        caption: "Answers",
        heads: ["A", "B"],
        rows: [views.map(({ agents }) => agents.get("main")?.result ?? "No answer.")],
      }),
    ),
  );
}

function tokensByModel({ overview }: SessionView): Map<string, string> {
  return new Map(
    overview.byModel.map((share) => [
      share.model,
      `${describeTokens(allTokens(share.usage))}, ${describeCost(share.costUsd)}`,
    ]),
  );
}

function callsByTool({ overview }: SessionView): Map<string, string> {
  return new Map(
    overview.byTool.map(({ tool, calls, failed }) => [
      tool,
      failed === 0 ? String(calls) : `${calls}, ${failed} failed`,
    ]),
  );
}

function figureRows(a: SessionView, b: SessionView): readonly (readonly string[])[] {
  const row = (name: string, of: (view: SessionView) => string) => [name, of(a), of(b)];
  return [
    row("state", ({ agents }) => agents.get("main")?.state ?? "empty"),
    row("cost", ({ overview }) => describeTotalCost(overview.totals)),
    row("tokens", ({ overview }) => describeTokens(allTokens(overview.totals.usage))),
    row("time", ({ agents }) => describeDuration(createTimeAxis([...agents.values()]).durationMs)),
    row("agents", ({ agents }) => String(agents.size)),
    row("turns", ({ overview }) => String(overview.totals.turns)),
    row("calls", ({ overview }) => String(overview.totals.toolUses)),
    row("failed calls", ({ overview }) => String(overview.totals.failedCalls)),
    row("refused calls", ({ overview }) => String(overview.totals.refusedCalls)),
  ];
}

function pairs(maps: readonly ReadonlyMap<string, string>[]): readonly (readonly string[])[] {
  const names = new Set(maps.flatMap((map) => [...map.keys()]));
  return [...names].map((name) => [name, ...maps.map((map) => map.get(name) ?? "none")]);
}
