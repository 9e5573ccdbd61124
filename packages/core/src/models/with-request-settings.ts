import { effortLevels } from "@retinue/base/foundation/option-words.ts";
import type { Model, ModelRequest } from "./model.ts";

type Effort = string | number;

/** The settings of every request of an agent. */
export interface RequestSettings extends Pick<ModelRequest, "cacheTtl" | "thinks"> {
  /** It thinks no more than this, no matter what asks for it: a plan, a person, a skill. */
  readonly maxEffort?: Effort | undefined;
}

/** Providers that keep prompts for an hour charge twice the input for it, and one and a quarter of it otherwise. */
const hourRate = 2 / 1.25;

/** The same model, whose requests say how long prompts are kept, whether it thinks, and how hard at most. */
export function withRequestSettings(model: Model, settings: RequestSettings): Model {
  const { cacheTtl, thinks, maxEffort } = settings;
  if (cacheTtl === undefined && thinks === undefined && maxEffort === undefined) return model;
  const { price } = model.facts;
  const isDearer = cacheTtl === "1h" && model.facts.provider === "anthropic" && price !== undefined;
  return {
    ...model,
    facts: isDearer
      ? { ...model.facts, price: { ...price, cacheWrite: price.cacheWrite * hourRate } }
      : model.facts,
    stream: (request, options) =>
      model.stream(
        {
          ...request,
          ...(cacheTtl === undefined ? {} : { cacheTtl }),
          ...(thinks === undefined ? {} : { thinks }),
          ...(maxEffort === undefined ? {} : { effort: cappedEffort(request.effort, maxEffort) }),
        },
        options,
      ),
  };
}

const levels: readonly Effort[] = effortLevels;

/** What providers take by default. */
const usual = "high";

/** Levels and numbers cannot be compared: then the ceiling counts. */
export function cappedEffort(asked: Effort | undefined, most: Effort): Effort | undefined {
  const isLower = (one: Effort, other: Effort): boolean => {
    if (typeof one === "number" && typeof other === "number") return one <= other;
    const [left, right] = [levels.indexOf(one), levels.indexOf(other)];
    return left !== -1 && right !== -1 && left <= right;
  };
  if (asked === undefined) return isLower(usual, most) ? undefined : most;
  return isLower(asked, most) ? asked : most;
}
