import { contextTokens } from "../conversation/usage.ts";
import type { CallStep, InspectedAgent, Inspection, Span, TurnStep } from "./inspection.ts";
import { spanOf } from "./totals-of.ts";

/** What handing work to a child has cost and brought, from the journal alone. */
export interface ChildWorth {
  readonly id: string;
  readonly parentId: string;
  readonly agentType: string;
  readonly description: string;
  readonly state: InspectedAgent["state"];
  /** Tokens of all its requests, from the cache or not. */
  readonly tokensRead: number;
  /** Its largest request: what its parent's context would have had to hold. */
  readonly largestContext: number;
  /** Tokens of its last answer, which its parent got. */
  readonly tokensReturned: number;
  /** Files it read, and those of them that its parent read after it had ended. */
  readonly filesRead: number;
  readonly filesReadAgain: readonly string[];
  /** How long its parent waited for it alone, or for it as the last of several. */
  readonly criticalMs: number;
  readonly durationMs: number;
  /** Its turns after the first that found nothing in the cache, although the model has one. */
  readonly cacheMisses: number;
  /** US dollars, and its part of the cost of all agents shown; absent where a price is not known. */
  readonly costUsd?: number;
  readonly costShare?: number;
  /** Absent where it is unknown. */
  readonly paid?: boolean;
  /** Why, in one sentence of figures. */
  readonly verdict: string;
}

export interface SessionWorth {
  readonly version: 1;
  readonly sessionId: string;
  readonly title: string;
  readonly costUsd?: number;
  readonly children: readonly ChildWorth[];
  readonly verdict: string;
}

/** Facts about each delegation of a session. Pure. */
export function worthOf({ session, agents, totals }: Inspection): SessionWorth {
  const byId = new Map(agents.map((agent) => [agent.id, agent]));
  const children = agents.flatMap((child): ChildWorth[] => {
    const parent = child.parentId === undefined ? undefined : byId.get(child.parentId);
    return parent === undefined ? [] : [worthOfChild(child, parent, totals.costUsd)];
  });
  const paid = children.filter((child) => child.paid === true);
  const unknown = children.filter((child) => child.paid === undefined).length;
  const kept = paid.reduce((sum, child) => sum + keptOut(child), 0);
  return {
    version: 1,
    sessionId: session.id,
    title: session.title,
    costUsd: totals.costUsd,
    children,
    verdict:
      children.length === 0
        ? "Nothing was delegated to children."
        : [
            `${paid.length} of ${children.length} delegations paid`,
            ...(unknown === 0 ? [] : [`, ${unknown} cannot be judged`]),
            ...(paid.length === 0
              ? []
              : [`; those kept ${kept} tokens out of the contexts of their parents`]),
            ".",
          ].join(""),
  };
}

function worthOfChild(child: InspectedAgent, parent: InspectedAgent, whole: number | undefined): ChildWorth {
  const turns = child.steps.filter((step) => step.type === "turn");
  const read = filesRead(child.steps);
  const ended = child.runs.at(-1)?.to ?? child.lastSignAt ?? Number.POSITIVE_INFINITY;
  const later = filesRead(parent.steps.filter(({ at }) => at !== undefined && at >= ended));
  const { costUsd } = child.totals;
  const facts = {
    id: child.id,
    parentId: parent.id,
    agentType: child.agentType,
    description: child.description,
    state: child.state,
    tokensRead: contextTokens(child.totals.usage),
    largestContext: Math.max(0, ...turns.map(({ usage }) => contextTokens(usage))),
    tokensReturned: turns.at(-1)?.usage.outputTokens ?? 0,
    filesRead: read.size,
    filesReadAgain: [...read].filter((file) => later.has(file)),
    criticalMs: criticalMs(child.id, parent),
    durationMs: child.totals.durationMs,
    cacheMisses: cacheMisses(turns),
    costUsd,
    ...(costUsd === undefined || whole === undefined || whole === 0 ? {} : { costShare: costUsd / whole }),
  };
  return { ...facts, ...judge(facts) };
}

type Facts = Omit<ChildWorth, "paid" | "verdict">;

/** One that worked, whose work its parent did not repeat, and that gave back less than it took in. */
function judge(facts: Facts): Pick<ChildWorth, "paid" | "verdict"> {
  const { state, filesRead: read, filesReadAgain: again, largestContext, tokensReturned } = facts;
  const no = (why: string) => ({ paid: false, verdict: `did not pay: ${why}` });
  if (state === "running") return no("it still runs");
  if (state !== "completed" && state !== "answered" && state !== "partial") return no(`it ended as ${state}`);
  if (again.length > 0 && again.length * 2 >= read)
    return no(`its parent read ${again.length} of its ${read} files again`);
  if (largestContext === 0) return { verdict: "cannot be judged: its answers do not report tokens" };
  if (keptOut(facts) <= 0)
    return no(`it gave back ${tokensReturned} tokens of ${largestContext} that it took in`);
  return {
    paid: true,
    verdict: `paid: ${largestContext} tokens stayed out of its parent's context, ${tokensReturned} came back`,
  };
}

function keptOut({
  largestContext,
  tokensReturned,
}: Pick<ChildWorth, "largestContext" | "tokensReturned">): number {
  return Math.max(0, largestContext - tokensReturned);
}

function filesRead(steps: InspectedAgent["steps"]): ReadonlySet<string> {
  return new Set(
    steps.flatMap((step) =>
      step.type === "call" && step.tool === "Read" && step.outcome === "ok" ? [step.about] : [],
    ),
  );
}

/** Of calls that were waited for together, each moment belongs to the call that ended last. */
function criticalMs(id: string, parent: InspectedAgent): number {
  const calls = parent.steps.filter(
    (step): step is CallStep => step.type === "call" && step.agentId !== undefined,
  );
  const own = calls.filter(({ agentId }) => agentId === id).flatMap(spanOf);
  const others = calls.filter(({ agentId }) => agentId !== id).flatMap(spanOf);
  return own.reduce(
    (sum, span) =>
      sum +
      lengthOutside(
        span,
        others.filter(({ to }) => to > span.to),
      ),
    0,
  );
}

function lengthOutside(span: Span, covering: readonly Span[]): number {
  const cuts = covering
    .map(({ from, to }) => ({ from: Math.max(from, span.from), to: Math.min(to, span.to) }))
    .filter(({ from, to }) => to > from)
    .toSorted((a, b) => a.from - b.from);
  let [left, at] = [0, span.from];
  for (const { from, to } of cuts) {
    left += Math.max(0, from - at);
    at = Math.max(at, to);
  }
  return left + Math.max(0, span.to - at);
}

function cacheMisses(turns: readonly TurnStep[]): number {
  const hasCache = turns.some(({ usage }) => usage.cacheReadTokens + usage.cacheWriteTokens > 0);
  return hasCache ? turns.slice(1).filter(({ usage }) => usage.cacheReadTokens === 0).length : 0;
}
