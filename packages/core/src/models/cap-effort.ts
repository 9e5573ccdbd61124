import { effortLevels } from "@retinue/base/foundation/option-words.ts";
import type { Model } from "./model.ts";

type Effort = string | number;

/** A model that thinks no more than this, no matter what asks for it: a plan, a person, a skill. */
export function capEffort(model: Model, most: Effort | undefined): Model {
  if (most === undefined) return model;
  return {
    ...model,
    stream: (request, options) =>
      model.stream({ ...request, effort: cappedEffort(request.effort, most) }, options),
  };
}

const levels: readonly Effort[] = effortLevels;

/** What providers take by default. */
const usual = "high";

/** Levels and numbers cannot be compared: then the ceiling counts. */
export function cappedEffort(asked: Effort | undefined, most: Effort): Effort | undefined {
  const isLower = (one: Effort, other: Effort): boolean =>
    typeof one === "number" && typeof other === "number" ? one <= other : isLowerLevel(one, other);
  if (asked === undefined) return isLower(usual, most) ? undefined : most;
  return isLower(asked, most) ? asked : most;
}

function isLowerLevel(one: Effort, other: Effort): boolean {
  const rank = (level: Effort): number => levels.indexOf(level);
  return rank(one) !== -1 && rank(other) !== -1 && rank(one) <= rank(other);
}
