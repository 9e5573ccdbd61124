import { createHash } from "node:crypto";
import { escapeHtml, type Html, html } from "./escape-html.ts";
import { describeCost, describeDuration, describeTokens, describeTotalCost } from "./figures.ts";
import type { InFlight, Inspection } from "./inspection.ts";
import { pageAgents } from "./page-agents.ts";
import { pageScript } from "./page-script.ts";
import { pageStyle } from "./page-style.ts";
import { pageTimeline } from "./page-timeline.ts";
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
  const live = session.isLive ? " The session was still open then and may have gone on." : "";
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
