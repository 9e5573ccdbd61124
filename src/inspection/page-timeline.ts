import { describeDuration } from "./describe-duration.ts";
import { type Html, html } from "./escape-html.ts";
import type { InspectedAgent } from "./inspection.ts";
import { type Bar, type BarKind, barsOf, createTimeAxis, type TimeAxis } from "./time-axis.ts";

const width = 1000;
/** The least that can be seen, and the gap below which two bars are drawn as one. */
const least = 0.8;

/** Below the others is what took long, so that short failures are seen. */
const order: readonly BarKind[] = ["other", "model", "tool", "failed", "refused"];

/** A bar for everything an agent did, all agents on the same axis. Sizes are attributes, so that no style is inline. */
export function pageTimeline(agents: readonly InspectedAgent[]): Html {
  const axis = createTimeAxis(agents);
  if (axis.durationMs === 0) return html``;
  const rows = agents.map(
    (agent, index) =>
      html`<div class="row"><a class="deep${Math.min(agent.depth, 3)}" href="#agent-${index}">${labelOf(agent)}</a>${chart(agent, axis)}</div>\n`,
  );
  const legend = order
    .toReversed()
    .map(
      (kind) =>
        html`<span><svg viewBox="0 0 1 1"><rect class="${kind}" width="1" height="1"/></svg>${kind === "other" ? "neither" : kind}</span>`,
    );
  return html`<section><h2>Timeline</h2>
<p class="soft legend">${legend}${describeDuration(axis.durationMs)} of work; pauses between prompts are left out.</p>
${rows}</section>`;
}

export function labelOf({ id, name, agentType }: InspectedAgent): string {
  return id === "main" ? "main" : `${name ?? agentType} ${id}`;
}

function chart(agent: InspectedAgent, axis: TimeAxis): Html {
  const bars = Map.groupBy(barsOf(agent, axis), ({ kind }) => kind);
  const scale = width / axis.durationMs;
  const rects = order.flatMap((kind) => drawn(bars.get(kind) ?? [], scale, kind));
  return html`<svg viewBox="0 0 ${width} 10" preserveAspectRatio="none" role="img" aria-label="What it did when">${rects}</svg>`;
}

/** Neighbours that could not be distinguished become one, which bounds how many there are. */
function drawn(bars: readonly Bar[], scale: number, kind: BarKind): readonly Html[] {
  const merged: { from: number; to: number }[] = [];
  for (const bar of bars.toSorted((a, b) => a.from - b.from)) {
    const [from, to] = [bar.from * scale, Math.max(bar.to * scale, bar.from * scale + least)];
    const last = merged.at(-1);
    if (last !== undefined && from - last.to < least) last.to = Math.max(last.to, to);
    else merged.push({ from, to });
  }
  return merged.map(
    ({ from, to }) =>
      html`<rect class="${kind}" x="${round(from)}" width="${round(to - from)}" height="10"/>`,
  );
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
