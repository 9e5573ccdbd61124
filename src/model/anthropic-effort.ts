import type { Effort, ModelTraits } from "./model-catalog.ts";

export interface ChosenEffort {
  /** A level the model knows. */
  readonly level?: Effort;
  /** Tokens for thinking, for models that take a number instead. */
  readonly budget?: number;
}

/**
 * What an effort means to a model: a level it knows (the next lower one if it lacks this one), or a number of tokens
 * for thinking. A number is read as such tokens. A model that knows neither gets nothing.
 */
export function chooseEffort(effort: string | number | undefined, traits: ModelTraits): ChosenEffort {
  if (effort === undefined) return {};
  const wanted =
    typeof effort === "number" ? levelOfBudget(effort) : ladder.find(({ level }) => level === effort);
  if (wanted === undefined) return {};
  if (traits.efforts.length === 0 || (typeof effort === "number" && traits.thinking === "budget")) {
    const budget = typeof effort === "number" ? Math.floor(effort) : wanted.budget;
    return traits.thinking === "budget" && budget > 0 ? { budget } : {};
  }
  const level = ladder
    .slice(0, ladder.indexOf(wanted) + 1)
    .findLast((rung) => traits.efforts.includes(rung.level))?.level;
  return level === undefined ? {} : { level };
}

interface Rung {
  readonly level: Effort;
  readonly budget: number;
}

const ladder: readonly Rung[] = [
  { level: "low", budget: 0 },
  { level: "medium", budget: 8_000 },
  { level: "high", budget: 16_000 },
  { level: "xhigh", budget: 24_000 },
  { level: "max", budget: 32_000 },
];

function levelOfBudget(tokens: number): Rung | undefined {
  return ladder.findLast(({ budget }) => tokens >= budget);
}
