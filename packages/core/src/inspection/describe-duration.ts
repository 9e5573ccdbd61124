import { contextTokens, type Usage } from "../conversation/usage.ts";
import type { InspectedTotals } from "./inspection.ts";

/** Figures as people read them, the same in the terminal and on the page. */

export function describeDuration(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return "";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(Math.floor(milliseconds / 100) / 10).toFixed(1)} s`;
  const seconds = Math.floor(milliseconds / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function describeTokens(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  if (tokens < 999_500) return `${shortened(tokens / 1000)}k`;
  return `${shortened(tokens / 1_000_000)}M`;
}

function shortened(amount: number): string {
  return amount < 10 ? amount.toFixed(1) : String(Math.round(amount));
}

/** Small sums keep enough digits to be distinguished from nothing. */
export function describeCost(cost: number | undefined): string {
  if (cost === undefined) return "unknown";
  return cost === 0 || cost >= 1 ? `$${cost.toFixed(2)}` : `$${cost.toFixed(4)}`;
}

/** The whole cost, or how much of it is known. */
export function describeTotalCost({
  costUsd: cost,
  pricedCost,
  unpriced,
  listPriced,
}: InspectedTotals): string {
  const answers = unpriced === 1 ? "1 answer has" : `${unpriced} answers have`;
  const known = cost === undefined ? `${describeCost(pricedCost)}, and ${answers} no known price` : undefined;
  return `${known ?? describeCost(cost)}${listPriced > 0 ? " (at list prices)" : ""}`;
}

export function allTokens(usage: Usage): number {
  return contextTokens(usage) + usage.outputTokens;
}

/** How far into the session, as `m:ss` or `h:mm:ss`. */
export function describeOffset(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const end = `${String(seconds % 60).padStart(2, "0")}`;
  return hours === 0 ? `${minutes}:${end}` : `${hours}:${String(minutes).padStart(2, "0")}:${end}`;
}
