import type { Difference } from "./difference.ts";
import { findGaps, type ReplayReport } from "./replay-recording.ts";

export interface ReplayStyle {
  readonly heading: (text: string) => string;
  readonly removed: (text: string) => string;
  readonly added: (text: string) => string;
  readonly text: (text: string) => string;
}

const plain: ReplayStyle = { heading: String, removed: String, added: String, text: String };

/** What a replay found, for people: each difference with its agent, turn and changed lines. */
export function describeReplay(report: ReplayReport, style: ReplayStyle = plain): string {
  const { requests, agents, differences, costUsd: cost } = report;
  const compared = requests.made - requests.uncompared;
  const counted = `${requests.same} of ${count(compared, "request")} the same to the byte`;
  const uncompared =
    requests.uncompared === 0 ? "" : `, ${requests.uncompared} without a record to compare with`;
  const money = `cost $${cost.now.toFixed(4)}${cost.now === cost.recorded ? "" : ` (recorded $${cost.recorded.toFixed(4)})`}`;
  const summary = `${report.sessionId}: ${count(agents, "agent")}, ${counted}${uncompared}, ${money}`;
  const gaps = differences.length === 0 ? findGaps(report) : report.damage;
  const none = gaps.length === 0 ? "No differences." : "No differences found.";
  const found = differences.length === 0 ? none : `${count(differences.length, "difference")}:`;
  const shown = differences.flatMap((difference) => ["", ...describe(difference, style)]);
  return [summary, ...gaps.map(style.text), found, ...shown].join("\n");
}

function describe(difference: Difference, style: ReplayStyle): readonly string[] {
  const { kind, agent, turn, message, title, lines } = difference;
  const where = [agent, turn === undefined ? undefined : `turn ${turn}`, message?.slice(0, 8)];
  const place = where.filter((part) => part !== undefined && part !== "").join(", ");
  return [
    style.heading(`${kind}: ${title} (${place})`),
    ...lines.map((line) => `  ${paintLine(line, style)}`),
  ];
}

function paintLine(line: string, { removed, added, text }: ReplayStyle): string {
  const sign = line.trimStart().charAt(0);
  if (sign === "-") return removed(line);
  return sign === "+" ? added(line) : text(line);
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
