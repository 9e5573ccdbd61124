import { escapeLine } from "../conversation/escape-control-tags.ts";
import { shorten } from "../definitions/describe-agents.ts";
import type { Skill } from "./skill.ts";

export interface ListSkillsOptions {
  /** Tokens that fit into the model. */
  readonly contextWindow: number;
  /** The part of the window that the list may take; one hundredth when absent. */
  readonly budgetFraction?: number | undefined;
  /** The most characters of one description; 1,536 when absent. */
  readonly maxDescription?: number | undefined;
  /** Skills that are in the list without a description. */
  readonly nameOnly?: ReadonlySet<string>;
}

export interface SkillList {
  readonly text: string;
  /** How many skills did not fit even by their names. */
  readonly left: number;
}

const defaultFraction = 0.01;
const defaultDescription = 1536;
const charactersPerToken = 4;
/** A shorter description says nothing. */
const shortestDescription = 24;

/** What a model is informed of the skills that it may call, by name, inside a budget: whole, then shortened, then names. */
export function listSkills(skills: readonly Skill[], options: ListSkillsOptions): SkillList {
  const listed = skills
    .filter(({ disableModelInvocation }) => !disableModelInvocation)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const budget = Math.floor(
    options.contextWindow * (options.budgetFraction ?? defaultFraction) * charactersPerToken,
  );
  const entries = listed.map((skill) => entryOf(skill, options));
  const most = Math.max(0, ...entries.map(({ description }) => description.length));
  const limit = largestLimit(most, (cut) => lengthOf(entries, cut) <= budget);
  if (limit !== undefined) return { text: entries.map((entry) => lineOf(entry, limit)).join("\n"), left: 0 };
  return namesWithin(entries, budget);
}

interface Entry {
  readonly name: string;
  readonly description: string;
}

function entryOf(skill: Skill, { nameOnly, maxDescription = defaultDescription }: ListSkillsOptions): Entry {
  if (nameOnly?.has(skill.name) === true) return { name: skill.name, description: "" };
  const { description, whenToUse, paths, argumentHint } = skill;
  const parts = [
    description,
    whenToUse,
    paths === undefined || paths.length === 0 ? undefined : `(for files ${paths.join(", ")})`,
    argumentHint === undefined ? undefined : `Arguments: ${argumentHint}`,
  ];
  const text = escapeLine(parts.filter((part) => part !== undefined).join(" "));
  return { name: skill.name, description: shorten(text, maxDescription) };
}

function lineOf({ name, description }: Entry, limit: number): string {
  const isCut = description.length > limit;
  if (description === "" || (isCut && limit < shortestDescription)) return `- ${name}`;
  return `- ${name}: ${shorten(description, limit)}`;
}

function lengthOf(entries: readonly Entry[], limit: number): number {
  return entries.reduce((sum, entry) => sum + lineOf(entry, limit).length + 1, 0);
}

/** All descriptions are cut at the same length, so that none is pushed out by a longer neighbour. */
function largestLimit(most: number, fits: (limit: number) => boolean): number | undefined {
  if (fits(most)) return most;
  if (!fits(0)) return undefined;
  let low = 0;
  let high = most;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

function namesWithin(entries: readonly Entry[], budget: number): SkillList {
  const lines: string[] = [];
  let used = 0;
  for (const { name } of entries) {
    if (used + name.length + 3 > budget) break;
    used += name.length + 3;
    lines.push(`- ${name}`);
  }
  const left = entries.length - lines.length;
  const rest = `(${left} more are not listed; they can be called by their names)`;
  return { text: [...lines, ...(left === 0 ? [] : [rest])].join("\n"), left };
}
