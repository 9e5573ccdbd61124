import { describeStep } from "./describe-step.ts";
import { type Html, html } from "./escape-html.ts";
import { allTokens, describeCost, describeDuration, describeOffset, describeTokens } from "./figures.ts";
import type { InspectedAgent, Step } from "./inspection.ts";
import { labelOf } from "./page-timeline.ts";
import { boundedLine } from "./read-line.ts";

/** Rows on the whole page, so that it stays a few megabytes; an agent always has some. */
const maxRows = 20_000;
const fewestRows = 40;
const maxDetail = 240;

/** Each agent, folded: what it was asked, what it did, what it said last. */
export function pageAgents(agents: readonly InspectedAgent[]): Html {
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
