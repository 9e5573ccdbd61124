import {
  allTokens,
  describeCost,
  describeTokens,
  describeTotalCost,
} from "@retinue/core/inspection/describe-duration.ts";
import type { Inspection } from "@retinue/core/inspection/inspection.ts";
import { plural } from "../../shared/format.ts";
import { createPaint } from "../../shared/paint.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { type Column, renderTable } from "./render-table.ts";

const maxAgents = 40;
const counts: readonly Column[] = ["TURNS", "IN", "OUT", "READ", "WRITE", "COST"].map((heading) => ({
  heading,
  atLeast: 4,
}));

/** What a session took in money and tokens: in all, by model, and by agent with the dearest first. */
export function renderCost({ agents, byModel, totals }: Inspection, width: number): string {
  const { usage } = totals;
  const paint = createPaint(false);
  const table = (heading: string, rows: readonly (readonly [string, Share])[]): string =>
    renderTable({
      columns: [{ heading, atLeast: 12, atMost: 40 }, ...counts],
      rows: rows.map(([name, share]) => [stripControlCharacters(name), ...cellsOf(share)]),
      width,
      paint,
    });
  const dearest = agents.toSorted((a, b) => b.totals.pricedCost - a.totals.pricedCost);
  const left = dearest.length - maxAgents;
  return [
    `${describeTotalCost(totals)}, ${plural(totals.turns, "turn")} of ${plural(agents.length, "agent")}, ${describeTokens(allTokens(usage))} tokens`,
    `${describeTokens(usage.inputTokens)} in, ${describeTokens(usage.outputTokens)} out, ${describeTokens(usage.cacheReadTokens)} read from the cache, ${describeTokens(usage.cacheWriteTokens)} written to it`,
    "",
    table(
      "MODEL",
      byModel.map((share) => [share.model, share]),
    ),
    table(
      "AGENT",
      dearest
        .slice(0, maxAgents)
        .map(({ id, name, agentType, description, totals: own }) => [
          id === "main" ? "main" : `${name ?? agentType}: ${description}`,
          own,
        ]),
    ),
    ...(left > 0 ? [`and ${plural(left, "agent")} more`] : []),
  ].join("\n");
}

type Share = Pick<Inspection["byModel"][number], "turns" | "usage" | "costUsd">;

function cellsOf({ turns, usage, costUsd }: Share): readonly string[] {
  return [
    String(turns),
    describeTokens(usage.inputTokens),
    describeTokens(usage.outputTokens),
    describeTokens(usage.cacheReadTokens),
    describeTokens(usage.cacheWriteTokens),
    describeCost(costUsd),
  ];
}
