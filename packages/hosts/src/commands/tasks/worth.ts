import {
  describeCost,
  describeDuration,
  describeTokens,
} from "@retinue/core/inspection/describe-duration.ts";
import { type ChildWorth, type SessionWorth, worthOf } from "@retinue/core/inspection/worth-of.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { openFolder } from "../../shared/open-project.ts";
import { createPaint, type Paint } from "../../shared/paint.ts";
import { stripControlCharacters, wrap } from "../../shared/strip-control-characters.ts";
import { type Column, renderTable } from "../views/render-table.ts";

const defaultWidth = 80;

/** `retinue worth [ID]`: what each delegation of a session has cost and brought, from its files alone. */
export async function worth(
  { host }: CommandContext,
  words: readonly string[],
  { json }: { readonly json?: boolean },
): Promise<number> {
  const written = words.length === 0 ? undefined : words.join(" ");
  const source = await openFolder(host).sessions.inspect(written);
  const found = worthOf(await source.load());
  const { stdout } = host;
  if (json === true) stdout.write(`${JSON.stringify(found, undefined, 2)}\n`);
  else
    stdout.write(
      renderWorth(found, {
        paint: createPaint(stdout.isColourAllowed),
        width: stdout.columns ?? defaultWidth,
      }),
    );
  return 0;
}

const columns: readonly Column[] = [
  { heading: "CHILD", atLeast: 12, atMost: 30, style: "name" },
  { heading: "READ", atLeast: 5 },
  { heading: "BACK", atLeast: 5 },
  { heading: "AGAIN", atLeast: 5 },
  { heading: "WAITED", atLeast: 6 },
  { heading: "MISSES", atLeast: 6 },
  { heading: "COST", atLeast: 7 },
  { heading: "SHARE", atLeast: 5 },
];

function renderWorth(
  { title, sessionId, children, verdict }: SessionWorth,
  { paint, width }: { readonly paint: Paint; readonly width: number },
): string {
  const head = [paint.bold(stripControlCharacters(title)), paint.dim(sessionId)];
  const table =
    children.length === 0 ? "" : renderTable({ columns, rows: children.map(rowOf), width, paint });
  const lines = children.flatMap((child) =>
    wrap(stripControlCharacters(`${nameOf(child)} ${child.verdict}.`), width - 2).map((line) => `  ${line}`),
  );
  return [...head, "", table.trimEnd(), ...lines, ...wrap(verdict, width), ""]
    .filter((line, at) => line !== "" || at === 2 || at > 3)
    .join("\n");
}

function nameOf({ id, agentType }: ChildWorth): string {
  return `${id.slice(0, 8)} ${agentType}`;
}

function rowOf(child: ChildWorth): readonly string[] {
  const { tokensRead, tokensReturned, filesReadAgain, filesRead, criticalMs, cacheMisses } = child;
  return [
    nameOf(child),
    describeTokens(tokensRead),
    describeTokens(tokensReturned),
    `${filesReadAgain.length}/${filesRead}`,
    describeDuration(criticalMs),
    String(cacheMisses),
    describeCost(child.costUsd),
    child.costShare === undefined ? "" : `${Math.round(child.costShare * 100)} %`,
  ];
}
