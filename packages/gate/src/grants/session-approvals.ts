import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { PolicyRule } from "../decide.ts";
import type { CallSeal } from "../seal-call.ts";

export interface ApprovedCall {
  readonly tool: string;
  readonly input: unknown;
  /** What it was bound to when it was allowed. */
  readonly seal?: CallSeal;
}

/** What people have granted while a session runs. Nothing of it outlives the session. */
export interface SessionApprovals {
  /** Allow rules for the calls of one agent: its own and those of the whole session. */
  rulesFor(agentId: string): readonly PolicyRule[];
  /** Whether this very call was allowed before, for the agent or the session. */
  coversCall(agentId: string, call: ApprovedCall): boolean;
  /** Without an agent the grant holds for all of the session. */
  grantRules(rules: readonly PolicyRule[], agentId?: string): void;
  grantCall(call: ApprovedCall, agentId?: string): void;
}

export function createSessionApprovals(): SessionApprovals {
  const session = emptyGrants();
  const agents = new Map<string, Grants>();
  const grantsOf = (agentId: string | undefined): Grants => {
    if (agentId === undefined) return session;
    const known = agents.get(agentId) ?? emptyGrants();
    agents.set(agentId, known);
    return known;
  };
  return {
    rulesFor: (agentId) => [...session.rules, ...(agents.get(agentId)?.rules ?? [])],
    coversCall(agentId, call) {
      const key = keyOf(call);
      return session.calls.has(key) || agents.get(agentId)?.calls.has(key) === true;
    },
    grantRules: (rules, agentId) => void grantsOf(agentId).rules.push(...rules),
    grantCall: (call, agentId) => void grantsOf(agentId).calls.add(keyOf(call)),
  };
}

interface Grants {
  readonly rules: PolicyRule[];
  readonly calls: Set<string>;
}

function emptyGrants(): Grants {
  return { rules: [], calls: new Set() };
}

/** The same for the same call, in whatever order a model writes the fields. */
function keyOf({ tool, input, seal }: ApprovedCall): string {
  return JSON.stringify([tool, inOrder(input), seal?.paths.toSorted(), seal?.scripts]);
}

/** The same text for the same value, in whatever order its fields are written. */
export function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return ["list", ...value.map(inOrder)];
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return ["object", ...entries.map(([key, inner]) => [key, inOrder(inner)])];
}
