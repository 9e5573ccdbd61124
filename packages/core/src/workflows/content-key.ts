import { createHash } from "node:crypto";
import type { AgentPlan, ChildPlan } from "../planning/agent-plan.ts";

/** What besides its prompt decides the outcome of a step. */
export interface StepShape {
  /** Of definition, rights, model, effort, isolation and base commit. */
  readonly hash: string;
  readonly agentType: string;
  readonly model: string;
}

interface ShapeFacts {
  /** The text of its definition; the rest of what the plan says to the model changes with the day. */
  readonly prompt: string;
  /** Where its working tree begins, if it has one. */
  readonly baseCommit: string | undefined;
}

/** The shape of the steps for which such a plan was decided. Labels, phases and prompts are not in it. */
export function shapeOf(plan: ChildPlan, { prompt, baseCommit }: ShapeFacts): StepShape {
  const { definition, chosenModel, effort, tools, policy, task, verify, maxTurns } = plan;
  const { source: _source, ...written } = definition;
  const rights = { tools, mode: policy.mode, deny: denied(policy) };
  const hash = hashOf({
    written,
    prompt,
    rights,
    chosenModel,
    effort: effort?.value,
    isolation: task.isolation,
    baseCommit,
    checks: verify?.checks.map(({ run }) => run),
    maxTurns: maxTurns?.value,
  });
  return { hash, agentType: task.agentType, model: chosenModel.id };
}

/** What a person allows in between is not in it: it must not make finished work count for nothing. */
function denied({ deny }: AgentPlan["policy"]): readonly unknown[] {
  return deny.map(({ rule }) => ({ tool: rule.canonicalTool, specifier: rule.specifier }));
}

export interface StepContent {
  readonly prompt: string;
  readonly shape: Pick<StepShape, "hash">;
  readonly schema?: unknown;
  readonly verify?: unknown;
}

/** Names steps by their content, and equal ones by how many of them came before. */
export function createContentKeys(): (content: StepContent) => string {
  const seen = new Map<string, number>();
  return ({ prompt, shape, schema, verify }) => {
    const content = hashOf({ prompt, shape: shape.hash, schema, verify });
    const count = seen.get(content) ?? 0;
    seen.set(content, count + 1);
    return `c1:${hashOf({ content, count })}`;
  };
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
