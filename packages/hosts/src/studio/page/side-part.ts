import { describeTokens } from "@retinue/core/inspection/describe-duration.ts";
import { describeBasis, describeQuoted } from "@retinue/core/inspection/describe-quote.ts";
import type { OverviewAgent, SessionOverview } from "@retinue/core/kernel/live/session-overview.ts";
import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import { CheckList, ReceiptChip } from "./check-list.ts";
import { duration, money, startOf, timeOfDay } from "./format.ts";
import { StateSign } from "./icons.ts";
import { labelOf, Table } from "./parts.ts";
import { type Place, runLink } from "./route.ts";

interface SideProps {
  readonly place: Place;
  readonly overview: SessionOverview;
  readonly agents: readonly OverviewAgent[];
  readonly agent: OverviewAgent | undefined;
  readonly plan: Readonly<Record<string, unknown>> | undefined;
}

/** Figures of the session, and what the selected agent has and may. */
export function SidePart({ place, overview, agents, agent, plan }: SideProps): ComponentChild {
  return h(
    "aside",
    { class: "pane p-side", "aria-label": "Details" },
    h(Cost, { overview, agents }),
    agent?.receipt === undefined ? null : h(Verified, { agent, receipt: agent.receipt }),
    agent?.quote === undefined
      ? null
      : h(
          "section",
          { class: "sec" },
          h("h2", { class: "clip" }, `Quote of ${labelOf(agent)}`),
          h("p", { class: agent.quote.isInside ? "" : "st-bad" }, describeQuoted(agent.quote)),
          h("p", { class: "dim" }, `from ${describeBasis(agent.quote.basis)}`),
        ),
    agent?.context === undefined ? null : h(Context, { agent, context: agent.context }),
    h(Calls, { overview }),
    plan === undefined ? null : h(Rights, { agent, plan }),
    h(Runs, { overview, place }),
    h(Acts, { overview, agents }),
    overview.notes.length === 0
      ? null
      : h(
          "section",
          { class: "sec" },
          h("h2", {}, "Notes"),
          h(
            "ul",
            { class: "plain-l" },
            overview.notes.map((note) => h("li", { key: note }, note)),
          ),
        ),
  );
}

const views = ["Agent", "Model", "Tool"] as const;
const maxBars = 7;

function Cost({
  overview,
  agents,
}: {
  overview: SessionOverview;
  agents: readonly OverviewAgent[];
}): ComponentChild {
  const [view, setView] = useState<(typeof views)[number]>("Agent");
  const shares = sharesOf(view, overview, agents).toSorted((a, b) => b[1] - a[1]);
  const rest = shares.slice(maxBars);
  const shown =
    rest.length === 0
      ? shares
      : [
          ...shares.slice(0, maxBars),
          [`${rest.length} more`, rest.reduce((sum, [, cost]) => sum + cost, 0)] as const,
        ];
  // The sum of the others would leave nothing of the bars that can be compared.
  const most = Math.max(1e-9, ...shares.map(([, cost]) => cost));
  const total = Math.max(1e-9, overview.totals.pricedCost);
  return h(
    "section",
    { class: "sec" },
    h(
      "div",
      { class: "row" },
      h("h2", {}, "Cost"),
      h(
        "div",
        { class: "seg", role: "group", "aria-label": "Cost by" },
        views.map((name) =>
          h(
            "button",
            { key: name, type: "button", "aria-pressed": name === view, onClick: () => setView(name) },
            name,
          ),
        ),
      ),
    ),
    shown.map(([name, cost]) =>
      h(
        "div",
        { key: name, class: "bar" },
        h("span", { class: "clip", title: name }, name),
        h(
          "svg",
          { preserveAspectRatio: "none", viewBox: "0 0 100 5", "aria-hidden": true },
          h("rect", {
            class: view === "Tool" ? "k-tool" : "k-model",
            width: Math.min(100, (100 * cost) / most),
            height: 5,
          }),
        ),
        h("span", {}, money(cost)),
        h("span", { class: "dim" }, `${Math.round((100 * cost) / total)} %`),
      ),
    ),
    overview.totals.unpriced === 0
      ? null
      : h("p", { class: "dim" }, `${overview.totals.unpriced} answers have no known price.`),
  );
}

function sharesOf(
  view: (typeof views)[number],
  overview: SessionOverview,
  agents: readonly OverviewAgent[],
): readonly (readonly [string, number])[] {
  if (view === "Model") return overview.byModel.map(({ model, costUsd }) => [model, costUsd ?? 0]);
  if (view === "Tool") return overview.costByTool.map(({ tool, costUsd }) => [tool ?? "no call", costUsd]);
  return agents.map((agent) => [labelOf(agent), agent.totals.pricedCost]);
}

function Context({
  agent,
  context,
}: {
  agent: OverviewAgent;
  context: NonNullable<OverviewAgent["context"]>;
}): ComponentChild {
  const { tokens, window, parts } = context;
  const percent = Math.round((100 * tokens) / window);
  // Of a large window a little is still seen.
  const shareOf = (part: number): number =>
    part === 0 ? 0 : Math.min(100, Math.max(0.6, (100 * part) / window));
  const high = percent > 80 ? "strong" : "";
  const tone = percent > 95 ? "st-bad" : high;
  return h(
    "section",
    { class: "sec" },
    h(
      "div",
      { class: "row" },
      h("h2", { class: "clip" }, `Context of ${labelOf(agent)}`),
      h(
        "span",
        { class: tone },
        `${describeTokens(tokens)} `,
        h("span", { class: "dim" }, `of ${describeTokens(window)}`),
      ),
    ),
    h(
      "svg",
      {
        class: "ctx",
        viewBox: "0 0 100 10",
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `${percent} percent of the context window`,
      },
      parts === undefined
        ? h("rect", { class: percent > 95 ? "k-failed" : "k-model", width: shareOf(tokens), height: 10 })
        : contextParts.map(([name, kind], at) => {
            const before = contextParts.slice(0, at).reduce((sum, [other]) => sum + parts[other], 0);
            return h("rect", {
              key: name,
              class: kind,
              x: shareOf(before),
              width: shareOf(parts[name]),
              height: 10,
            });
          }),
    ),
    parts === undefined
      ? null
      : h(
          "ul",
          { class: "ctx-l" },
          contextParts.map(([name, kind, label]) =>
            h(
              "li",
              { key: name },
              h(
                "svg",
                { width: 10, height: 10, "aria-hidden": true },
                h("rect", { class: kind, width: 10, height: 10, rx: 2 }),
              ),
              h("span", { class: "grow" }, label),
              h("span", {}, describeTokens(parts[name])),
            ),
          ),
        ),
  );
}

/** What fills a window, in the order in which it is sent. */
const contextParts = [
  ["start", "k-start", "System, tools, first prompt"],
  ["answers", "k-model", "Answers"],
  ["results", "k-tool", "Results, later messages"],
] as const;

/** What the runtime vouches for: each check, the tree it was run on, and facts of the run. */
function Verified({
  agent,
  receipt: { status, checks, tree, notes },
}: {
  agent: OverviewAgent;
  receipt: NonNullable<OverviewAgent["receipt"]>;
}): ComponentChild {
  if (checks.length === 0 && notes.length === 0)
    return h(
      "section",
      { class: "sec" },
      h("div", { class: "row" }, h("h2", { class: "clip" }, `Receipt of ${labelOf(agent)}`)),
      h("p", { class: "dim" }, "Nothing was verified."),
    );
  return h(
    "section",
    { class: "sec" },
    h(
      "div",
      { class: "row" },
      h("h2", { class: "clip" }, `Receipt of ${labelOf(agent)}`),
      h(ReceiptChip, { status }),
    ),
    h(CheckList, { checks }),
    tree === undefined
      ? null
      : h("p", { class: "dim" }, "Ran on tree ", h("code", {}, tree.slice(0, 12)), "."),
    notes.map((note) => h("p", { key: note, class: "st-wait" }, note)),
  );
}

function Calls({ overview }: { overview: SessionOverview }): ComponentChild {
  if (overview.byTool.length === 0) return null;
  return h(
    "section",
    { class: "sec" },
    h(Table, {
      caption: "Calls by tool",
      heads: ["Tool", "Calls", "Failed", "Refused", "Time"],
      rows: overview.byTool.map(({ tool, calls, failed, refused, durationMs }) => [
        tool,
        String(calls),
        failed === 0 ? "" : String(failed),
        refused === 0 ? "" : String(refused),
        duration(durationMs),
      ]),
    }),
  );
}

function Rights({
  agent,
  plan,
}: {
  agent: OverviewAgent | undefined;
  plan: Readonly<Record<string, unknown>>;
}): ComponentChild {
  // What an agent may, of its plan.
  const found = new Map<string, string[]>();
  for (const [field, value] of planRows(plan)) {
    const name = named[field];
    if (name !== undefined) found.set(name, [...(found.get(name) ?? []), value]);
  }
  const rows = [...found].map(([name, values]) => [name, [...new Set(values)].join(", ")]);
  return h(
    "section",
    { class: "sec" },
    h("h2", { class: "clip" }, `Rights of ${agent === undefined ? "this agent" : labelOf(agent)}`),
    h(
      "dl",
      { class: "dl" },
      rows.map(([name, value]) => [h("dt", { key: `${name}t` }, name), h("dd", { key: name }, value)]),
    ),
    h(PlanPart, { plan }),
  );
}

const maxRuns = 20;

function Runs({ overview, place }: { overview: SessionOverview; place: Place }): ComponentChild {
  const { workflows = [] } = overview;
  if (workflows.length === 0) return null;
  return h(
    "section",
    { class: "sec" },
    h("h2", {}, "Workflows"),
    h(
      "ul",
      { class: "plain-l" },
      workflows
        .slice(0, maxRuns)
        .map(({ runId, name, status, done, steps, startedAt }) =>
          h(
            "li",
            { key: runId, class: "row" },
            h(StateSign, { state: status }),
            h("a", { class: "link clip grow", href: runLink(place, runId) }, name),
            h("span", { class: "dim" }, `${done}/${steps} · ${startOf(startedAt)}`),
          ),
        ),
    ),
  );
}

function Acts({
  overview,
  agents,
}: {
  overview: SessionOverview;
  agents: readonly OverviewAgent[];
}): ComponentChild {
  const { acts = [] } = overview;
  if (acts.length === 0) return null;
  return h(
    "section",
    { class: "sec" },
    h("h2", {}, "What people did"),
    h(
      "ul",
      { class: "plain-l" },
      acts.map(({ at, by, action, agentId, text, state, reason }, index) => {
        const agent = agents.find(({ id }) => id === agentId);
        const what = text === undefined ? action : `${action}: ${text}`;
        return h(
          "li",
          { key: index },
          h("span", { class: "dim" }, `${timeOfDay(at)} ${by} `),
          `${what} (${agent === undefined ? agentId : labelOf(agent)}), `,
          reason === undefined ? state : `${state}: ${reason}`,
        );
      }),
    ),
  );
}

type Json = Readonly<Record<string, unknown>>;

/** What was decided for the run, and where each field came from. */
function PlanPart({ plan }: { plan: Json }): ComponentChild {
  return h(
    "details",
    {},
    h("summary", {}, "Plan: what was decided for this agent, and where each field came from"),
    h(Table, { caption: "Plan", heads: ["Field", "Value", "From"], rows: planRows(plan) }),
  );
}

const named: Readonly<Record<string, string>> = {
  "permission mode": "Mode",
  tools: "Tools",
  "allow rule": "Allowed",
  "ask rule": "Asked",
  "deny rule": "Denied",
};

function planRows(plan: Json): readonly (readonly [string, string, string])[] {
  return Object.entries(plan).flatMap(([name, value]) => rowsOf(name, value, plan));
}

function rowsOf(name: string, value: unknown, plan: Json): readonly (readonly [string, string, string])[] {
  if (name === "modeFrom" || value === undefined) return [];
  if (name === "policy" && isObject(value)) {
    const rules = ["allow", "ask", "deny"].flatMap((kind) => ruleRows(kind, value[kind]));
    return [["permission mode", textOf(value["mode"]), textOf(plan["modeFrom"] ?? "")], ...rules];
  }
  if (isObject(value) && "value" in value && "from" in value)
    return [[name, textOf(value["value"]), textOf(value["from"])]];
  if (name === "system" && Array.isArray(value))
    return [
      [
        name,
        value.map((part) => (isObject(part) ? `${textOf(part["length"])} characters` : "")).join(", "),
        "",
      ],
    ];
  if (name === "tools" && Array.isArray(value))
    return [
      [name, value.map((tool) => (isObject(tool) ? textOf(tool["name"]) : textOf(tool))).join(", "), ""],
    ];
  if (isObject(value))
    return Object.entries(value).flatMap(([key, inner]) => rowsOf(`${name}.${key}`, inner, plan));
  return [[name, textOf(value), ""]];
}

function ruleRows(kind: string, rules: unknown): readonly (readonly [string, string, string])[] {
  if (!Array.isArray(rules)) return [];
  return rules
    .filter(isObject)
    .map((rule) => [`${kind} rule`, ruleText(rule["rule"]), textOf(rule["from"] ?? "")]);
}

/** As a settings file has it; one of another version by its parts. */
function ruleText(rule: unknown): string {
  if (!isObject(rule)) return textOf(rule);
  const specifier = rule["specifier"];
  if (isObject(specifier) && specifier["type"] === "whole") return textOf(rule["tool"]);
  const inner = isObject(specifier)
    ? (specifier["pattern"] ?? specifier["text"] ?? JSON.stringify(specifier))
    : specifier;
  return inner === undefined ? textOf(rule["tool"]) : `${textOf(rule["tool"])}(${textOf(inner)})`;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
