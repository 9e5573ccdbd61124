import type { Model, ModelRequest } from "./model.ts";

/** The settings of every request of an agent. */
export type RequestSettings = Pick<ModelRequest, "cacheTtl" | "thinks">;

/** Providers that keep prompts for an hour charge twice the input for it, and one and a quarter of it otherwise. */
const hourRate = 2 / 1.25;

/** The same model, whose requests say how long prompts are kept, and whether it thinks. */
export function withRequestSettings(model: Model, settings: RequestSettings): Model {
  const { cacheTtl, thinks } = settings;
  if (cacheTtl === undefined && thinks === undefined) return model;
  const { price } = model.facts;
  const isDearer = cacheTtl === "1h" && model.facts.provider === "anthropic" && price !== undefined;
  const facts = isDearer
    ? { ...model.facts, price: { ...price, cacheWrite: price.cacheWrite * hourRate } }
    : model.facts;
  return {
    ...model,
    facts,
    stream: (request, options) =>
      model.stream(
        {
          ...request,
          ...(cacheTtl === undefined ? {} : { cacheTtl }),
          ...(thinks === undefined ? {} : { thinks }),
        },
        options,
      ),
  };
}
