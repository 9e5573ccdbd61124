import { costOf, type Usage } from "../conversation/usage.ts";
import type { JsonRecord } from "../foundation/json-value.ts";
import { lookUpModel } from "../model/model-catalog.ts";
import { numberField, recordField, textField } from "./read-line.ts";

export type AnswerCost =
  | { readonly costFrom: "line" | "catalog"; readonly cost: number }
  | { readonly costFrom: "unknown" };

/** What an answer cost: as its line says, else by the catalog's price, else nobody knows. */
export function answerCost(
  recorded: number | undefined,
  { model, usage, wire }: { readonly model: string; readonly usage: Usage; readonly wire: JsonRecord },
): AnswerCost {
  if (recorded !== undefined) return { costFrom: "line", cost: recorded };
  if (Object.values(usage).every((tokens) => tokens === 0)) return { costFrom: "line", cost: 0 };
  const { price } = lookUpModel(model).facts;
  if (price === undefined || isPricedOtherwise(wire)) return { costFrom: "unknown" };
  return { costFrom: "catalog", cost: costOf(usage, price) };
}

/** The catalog has the usual price only: not that of other speeds and tiers, nor of caches kept for an hour. */
function isPricedOtherwise(wire: JsonRecord): boolean {
  const tier = textField(wire, "service_tier");
  const speed = textField(wire, "speed");
  const hour = numberField(recordField(wire, "cache_creation") ?? {}, "ephemeral_1h_input_tokens") ?? 0;
  return (
    (tier !== undefined && tier !== "standard") || (speed !== undefined && speed !== "standard") || hour > 0
  );
}
