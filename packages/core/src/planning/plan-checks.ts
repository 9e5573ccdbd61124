import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { mayWiden } from "@retinue/config/agents/agent-source.ts";
import { readVerifyChecks, type VerifyChecks } from "@retinue/config/settings/verify-checks.ts";
import type { PlannedCheck, PlannedChecks } from "./agent-plan.ts";
import type { AgentRequest } from "./agent-request.ts";

interface CheckFacts {
  readonly definition?: AgentDefinition;
  readonly trusted: boolean;
  readonly verify?: Readonly<Record<string, unknown>> | undefined;
}

type ChecksPlanned =
  | { readonly type: "planned"; readonly checks: PlannedChecks | undefined }
  | { readonly type: "refused"; readonly reason: string };

/** The checks of the call, the settings and the definition add up: none of them takes another one's away. */
export function planChecks(
  request: Pick<AgentRequest, "verify" | "keptChecks" | "origin">,
  { definition, trusted, verify = {} }: CheckFacts,
): ChecksPlanned {
  const type = definition?.source.id ?? definition?.name ?? "main";
  const named = [
    { value: request.verify, from: "the call", ofModel: request.origin === "model" },
    { value: Object.hasOwn(verify, type) ? verify[type] : undefined, from: "the settings", ofModel: false },
  ];
  const sources: {
    readonly checks: VerifyChecks;
    readonly from: string;
    readonly more?: Partial<PlannedCheck>;
  }[] = [];
  for (const { value, from, ofModel } of named) {
    if (value === undefined || value === null) continue;
    const reading = readVerifyChecks(value);
    if (reading.type === "unreadable")
      return { type: "refused", reason: `\`verify\` of ${from} cannot be read: ${reading.reason}` };
    sources.push({ checks: reading.checks, from, ...(ofModel ? { more: { ofModel } } : {}) });
  }
  if (definition?.verify !== undefined) {
    const isTrusted = mayWiden(definition.source, trusted);
    sources.push({
      checks: definition.verify,
      from: "the definition",
      ...(isTrusted
        ? {}
        : {
            more: {
              refused: "it comes from a file of a folder that is not trusted; `retinue trust` trusts it",
            },
          }),
    });
  }
  if (sources.length === 0 && request.keptChecks === undefined) return { type: "planned", checks: undefined };
  // The same command of several is one check, and the strongest of them has named it.
  const checks = new Map<string, PlannedCheck>();
  for (const { checks: some, from, more } of sources.toReversed())
    for (const check of some.checks) {
      const known = checks.get(check.run);
      if (known === undefined || known.refused !== undefined)
        checks.set(check.run, { ...check, from, ...more });
    }
  for (const check of request.keptChecks ?? []) if (!checks.has(check.run)) checks.set(check.run, check);
  const retries = sources.find((source) => source.checks.retries !== undefined)?.checks.retries;
  return {
    type: "planned",
    checks: { checks: [...checks.values()], retries },
  };
}
