import { createHash } from "node:crypto";
import {
  allTokens,
  describeCost,
  describeDuration,
  describeOffset,
  describeTokens,
  describeTotalCost,
} from "./describe-duration.ts";
import { describeStep } from "./describe-step.ts";
import { escapeHtml, type Html, html } from "./escape-html.ts";
import type { InFlight, InspectedAgent, Inspection, Step } from "./inspection.ts";
import { labelOf, pageTimeline } from "./page-timeline.ts";
import { boundedLine } from "./read-line.ts";
import { createTimeAxis } from "./time-axis.ts";

const maxAgents = 1000;

/** One page that needs nothing but itself, and lets nothing in it load or run but its own style and script. */
export function renderPage(inspection: Inspection): string {
  const agents = inspection.agents.slice(0, maxAgents);
  const policy = [
    "default-src 'none'",
    `style-src '${hashOf(pageStyle)}'`,
    `script-src '${hashOf(pageScript)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const body = html`${head(inspection)}
${pageTimeline(agents)}
${shares(inspection)}
${list("Refused", inspection.refusals.slice(0, maxAgents).map(refusalText))}
${list(
  "In flight",
  inspection.agents.flatMap(({ id, inFlight }) => inFlight.map((open) => `${id}: ${inFlightText(open)}`)),
)}
${list("Notes", [...inspection.notes, ...leftOut(inspection)])}
${pageAgents(agents)}`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(inspection.session.title)}</title>
<style>${pageStyle}</style>
</head>
<body>
${body.html}
<script>${pageScript}</script>
</body>
</html>
`;
}

function head({ session, takenAt, totals, agents, only }: Inspection): Html {
  const [first] = agents;
  const state =
    first === undefined ? "" : `${first.state}${first.reason === undefined ? "" : ` (${first.reason})`}`;
  const live = session.isLive ? " The session was still open then and may have continued." : "";
  const place = [session.cwd, session.gitBranch].filter((text) => text !== undefined).join(", branch ");
  const { usage } = totals;
  const figures = [
    ["state", state],
    ["cost", describeTotalCost(totals)],
    ["time", describeDuration(createTimeAxis(agents).durationMs)],
    [
      "model / tools / neither",
      [totals.modelMs, totals.toolMs, totals.otherMs].map(describeDuration).join(" / "),
    ],
    ["agents", String(agents.length)],
    ["turns", String(totals.turns)],
    ["calls", `${totals.toolUses}, ${totals.failedCalls} failed, ${totals.refusedCalls} refused`],
    ["tokens in / out", [usage.inputTokens, usage.outputTokens].map(describeTokens).join(" / ")],
    ["cache read / write", [usage.cacheReadTokens, usage.cacheWriteTokens].map(describeTokens).join(" / ")],
    ["questions, retries, compactions", `${totals.questions}, ${totals.retries}, ${totals.compactions}`],
  ] as const;
  const whose = only === undefined ? html`` : html`<p>Only the agent ${only} and its children.</p>`;
  return html`<header><h1>${session.title}</h1>
<p class="soft">Session ${session.id}${place === "" ? "" : ` in ${place}`}. A snapshot of ${new Date(takenAt).toISOString()}.${live}</p>${whose}
<div class="figures">${figures.map(([name, value]) => html`<div><span class="soft">${name}</span><b>${value}</b></div>`)}</div></header>`;
}

function shares({ byModel, byTool }: Inspection): Html {
  const models = byModel.map(({ model, turns, modelMs, usage, cost }) => [
    model,
    String(turns),
    describeDuration(modelMs),
    describeTokens(usage.inputTokens),
    describeTokens(usage.outputTokens),
    describeTokens(usage.cacheReadTokens),
    describeTokens(usage.cacheWriteTokens),
    describeCost(cost),
  ]);
  const tools = byTool.map(({ tool, calls, durationMs, failed, refused, agentsCost }) => [
    tool,
    String(calls),
    describeDuration(durationMs),
    String(failed),
    String(refused),
    agentsCost === undefined ? "" : describeCost(agentsCost),
  ]);
  return html`<section><h2>Where the money and the time went</h2>
${table(["model", "turns", "time", "in", "out", "cache read", "cache write", "cost"], models)}
${table(["tool", "calls", "time", "failed", "refused", "cost of its agents"], tools)}</section>`;
}

function table(headings: readonly string[], rows: readonly (readonly string[])[]): Html {
  if (rows.length === 0) return html``;
  const cell = (text: string, index: number): Html =>
    index === 0 ? html`<td>${text}</td>` : html`<td class="number">${text}</td>`;
  const heading = (text: string, index: number): Html =>
    index === 0 ? html`<th>${text}</th>` : html`<th class="number">${text}</th>`;
  return html`<table><thead><tr>${headings.map(heading)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map(cell)}</tr>\n`)}</tbody></table>`;
}

function list(heading: string, lines: readonly string[]): Html {
  if (lines.length === 0) return html``;
  return html`<section><h2>${heading}</h2><ul>${lines.map((line) => html`<li>${line}</li>\n`)}</ul></section>`;
}

function refusalText({ agentId, tool, about, reason }: Inspection["refusals"][number]): string {
  return `${agentId}: ${tool} ${about}: ${reason}`;
}

function inFlightText(open: InFlight): string {
  return open.type === "model" ? "waiting for the model" : `${open.tool} ${open.about}`;
}

function leftOut({ agents }: Inspection): readonly string[] {
  const count = agents.length - maxAgents;
  return count <= 0 ? [] : [`${count} more agents are left out of this page.`];
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

/** Opens and closes what is folded; without it the page can be read all the same. */
const pageScript = `
const all = () => document.querySelectorAll("details");
document.getElementById("open").addEventListener("click", () => all().forEach((one) => { one.open = true; }));
document.getElementById("close").addEventListener("click", () => all().forEach((one) => { one.open = false; }));
const reveal = () => {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
};
addEventListener("hashchange", reveal);
reveal();
`;

/** The style of the page; light or dark as the reader's system is. */
const pageStyle = `
:root { color-scheme: light dark; --text: #1c2024; --soft: #60666d; --line: #d9dde1; --back: #fff; --panel: #f5f6f8;
  --model: #2f6fdb; --tool: #2c9a5b; --failed: #d4572a; --refused: #c2185b; --other: #c5cbd1; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7ea; --soft: #9aa1a8; --line: #343a40; --back: #14171a; --panel: #1d2125;
    --model: #6aa0ff; --tool: #4cc282; --failed: #ff8a5c; --refused: #ff6b9d; --other: #4a5158; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 76rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
.soft, th { color: var(--soft); }
.bad { color: var(--failed); }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(10.5rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.figures div { background: var(--panel); border-radius: .4rem; padding: .5rem .75rem; }
.figures b { display: block; font-size: 1.1rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { font-weight: 500; }
.number { text-align: right; white-space: nowrap; }
.row { display: grid; grid-template-columns: 15rem 1fr; gap: .75rem; align-items: center; }
.row a { color: inherit; text-decoration: none; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.row a:hover { text-decoration: underline; }
svg { display: block; width: 100%; height: 1rem; background: var(--panel); }
.model { fill: var(--model); } .tool { fill: var(--tool); } .failed { fill: var(--failed); }
.refused { fill: var(--refused); } .other { fill: var(--other); }
.legend span { display: inline-block; margin-right: 1rem; }
.legend svg { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; vertical-align: -.08rem; }
.deep1 { padding-left: 1rem; } .deep2 { padding-left: 2rem; } .deep3 { padding-left: 3rem; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--panel); padding: .6rem; border-radius: .4rem;
  max-height: 20rem; overflow: auto; font-size: .85rem; }
button { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line); border-radius: .3rem;
  padding: .15rem .6rem; cursor: pointer; }
`;

/** Rows on the whole page, so that it stays a few megabytes; an agent always has some. */
const maxRows = 20_000;
const fewestRows = 40;
const maxDetail = 240;

/** Each agent, folded: what it was asked, what it did, what it said last. */
function pageAgents(agents: readonly InspectedAgent[]): Html {
  const rows = Math.max(fewestRows, Math.floor(maxRows / Math.max(1, agents.length)));
  return html`<section><h2>Agents</h2>
<p><button id="open">open all</button> <button id="close">close all</button></p>
${agents.map((agent, index) => agentPart(agent, index, rows))}</section>`;
}

function agentPart(agent: InspectedAgent, index: number, rows: number): Html {
  const { totals, state, reason, error, description, prompt, result } = agent;
  const figures = [
    describeDuration(totals.durationMs),
    `${totals.turns} turns`,
    `${totals.toolUses} calls`,
    `${describeTokens(allTokens(totals.usage))} tokens`,
    describeCost(totals.cost),
  ].join(", ");
  const ending = `${state}${reason === undefined ? "" : ` (${reason})`}`;
  const facts = [...(description === "" ? [] : [description]), ...agent.models].join(" · ");
  return html`<details id="agent-${index}"><summary><b>${labelOf(agent)}</b> ${ending} <span class="soft">${figures}</span></summary>
<p class="soft">${facts}</p>${error === undefined ? html`` : html`<p class="bad">${error}</p>`}
${section("Asked", prompt)}${stepTable(agent, rows)}${section("Said last", result)}</details>
`;
}

function section(heading: string, text: string | undefined): Html {
  return text === undefined ? html`` : html`<h3 class="soft">${heading}</h3><pre>${text}</pre>`;
}

function stepTable({ steps, startedAt = 0 }: InspectedAgent, rows: number): Html {
  const head = Math.ceil(rows / 2);
  const left = steps.length - rows;
  const shown = left <= 0 ? steps : steps.slice(0, head);
  const gap =
    left <= 0
      ? html``
      : html`<tr><td class="soft" colspan="4">${left} steps are left out here; \`retinue inspect --json\` has them.</td></tr>`;
  const rest = left <= 0 ? [] : steps.slice(steps.length - (rows - head));
  const row = (step: Step): Html => stepRow(step, startedAt);
  return html`<table><thead><tr><th class="number">at</th><th class="number">took</th><th>what</th><th></th></tr></thead>
<tbody>${shown.map(row)}${gap}${rest.map(row)}</tbody></table>`;
}

function stepRow(step: Step, start: number): Html {
  const { what, detail, isBad } = describeStep(step);
  const at = step.at === undefined ? "" : describeOffset(step.at - start);
  const took = "durationMs" in step ? describeDuration(step.durationMs) : "";
  const name = isBad ? html`<td class="bad">${what}</td>` : html`<td>${what}</td>`;
  return html`<tr><td class="number">${at}</td><td class="number">${took}</td>${name}<td>${boundedLine(detail, maxDetail)}</td></tr>
`;
}
