import { createHash } from "node:crypto";
import type { AgentPlan, ChildPlan } from "../planning/agent-plan.ts";

/** What decides the outcome of a step, by what people call it: short texts, and hashes of long ones. Absent: it has none. */
export type StepParts = Readonly<Partial<Record<StepPart, string>>>;

const shapeParts = ["definition", "rights", "model", "effort", "isolation", "base"] as const;
const stepParts = ["prompt", ...shapeParts, "schema", "checks"] as const;

export type StepPart = (typeof stepParts)[number];

/** What besides its prompt decides the outcome of a step. */
export interface StepShape {
  /** Of definition, rights, model, effort, isolation and base commit. */
  readonly hash: string;
  readonly parts: StepParts;
  readonly agentType: string;
  readonly model: string;
}

interface ShapeFacts {
  /** The text of its definition; the rest of the prompt in the plan changes with the day. */
  readonly prompt: string;
  /** Where its working tree begins, if it has one. */
  readonly baseCommit: string | undefined;
}

/** The shape of the steps for which such a plan was decided. Labels, phases and prompts are not in it. */
export function shapeOf(plan: ChildPlan, { prompt, baseCommit }: ShapeFacts): StepShape {
  const { definition, chosenModel, effort, tools, policy, task, verify, maxTurns } = plan;
  const { source: _source, ...written } = definition;
  const rights = { tools, mode: policy.mode, deny: denied(policy) };
  const checks = verify?.checks.map(({ run }) => run);
  const hash = hashOf({
    written,
    prompt,
    rights,
    chosenModel,
    effort: effort?.value,
    isolation: task.isolation,
    baseCommit,
    checks,
    maxTurns: maxTurns?.value,
  });
  const parts = {
    definition: shortHash({ written, prompt, checks, maxTurns: maxTurns?.value }),
    rights: shortHash(rights),
    model: chosenModel.id,
    ...(effort === undefined ? {} : { effort: String(effort.value) }),
    ...(task.isolation === undefined ? {} : { isolation: task.isolation }),
    ...(baseCommit === undefined ? {} : { base: baseCommit.slice(0, 12) }),
  };
  return { hash, parts, agentType: task.agentType, model: chosenModel.id };
}

/** What a person allows in between is not in it: it must not make finished work count for nothing. */
function denied({ deny }: AgentPlan["policy"]): readonly unknown[] {
  return deny.map(({ rule }) => ({ tool: rule.canonicalTool, specifier: rule.specifier }));
}

export interface StepContent {
  readonly prompt: string;
  readonly shape: Pick<StepShape, "hash" | "parts">;
  readonly schema?: unknown;
  readonly verify?: unknown;
}

export interface ContentKey {
  readonly key: string;
  readonly parts: StepParts;
}

/** Names steps by their content, and equal ones by how many of them came before. */
export function createContentKeys(): (content: StepContent) => ContentKey {
  const seen = new Map<string, number>();
  return ({ prompt, shape, schema, verify }) => {
    const content = hashOf({ prompt, shape: shape.hash, schema, verify });
    const count = seen.get(content) ?? 0;
    seen.set(content, count + 1);
    const parts = {
      prompt: shortHash(prompt),
      ...shape.parts,
      ...(schema === undefined ? {} : { schema: shortHash(schema) }),
      ...(verify === undefined ? {} : { checks: shortHash(verify) }),
    };
    return { key: `c1:${hashOf({ content, count })}`, parts };
  };
}

const partWords: Readonly<Record<StepPart, string>> = {
  prompt: "its prompt",
  definition: "the definition of its agent",
  rights: "its rights",
  model: "its model",
  effort: "its effort",
  isolation: "its isolation",
  base: "the commit it begins from",
  schema: "its schema",
  checks: "its checks",
};

/** Those whose values say something to people. */
const namedParts: ReadonlySet<StepPart> = new Set(["model", "effort", "isolation", "base"]);

/** What is different about a step, in words; undefined where nothing is. */
export function describeChange(before: StepParts, now: StepParts): string | undefined {
  const changed = stepParts.filter((part) => before[part] !== now[part]);
  if (changed.length === 0) return undefined;
  const words = changed.map((part) =>
    namedParts.has(part)
      ? `${partWords[part]} (${before[part] ?? "none"} → ${now[part] ?? "none"})`
      : partWords[part],
  );
  return `${words.join(" and ")} changed`;
}

function shortHash(value: unknown): string {
  return hashOf(value).slice(0, 12);
}

function hashOf(value: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(sorted(value)) ?? "")
    .digest("hex");
}

/** In whatever order the keys of an object were written, it is the same. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, entry]) => [key, sorted(entry)]);
}
