import type { QuoteSettings } from "@retinue/config/settings/read-environment.ts";
import type { BatchQuote, QuotedAgent } from "@retinue/gate/batch-quote.ts";
import { estimateRequestTokens } from "../../conversation/estimate-request-tokens.ts";
import type { Price } from "../../conversation/usage.ts";
import type { ChildPlan } from "../../planning/agent-plan.ts";
import type { ChildPlanned, SpawnRequest } from "../../planning/agent-request.ts";
import type { PastRun } from "../../planning/predict-run.ts";
import { quoteAgent, quoteBatch } from "../../planning/quote-agent.ts";
import { createPastRuns } from "../../tasks/past-runs.ts";
import { readChildLimits } from "../../tasks/task-manager.ts";
import { specificationOf } from "../../tools/json-schema-of.ts";
import type { Tool } from "../../tools/tool.ts";
import type { FolderContext } from "../runtime-context.ts";

/** What agents of a session are expected to take, before they start. */
export interface Quotes {
  /** The settings; absent: nothing is asked about and nothing is kept, only what is asked for is quoted. */
  readonly settings: QuoteSettings | undefined;
  agent(plan: ChildPlan): Promise<QuotedAgent>;
  /** Plans each that is not planned yet, and quotes them together; `quoted` has each that would start at its place. */
  batch(
    wanted: readonly (SpawnRequest | ChildPlan)[],
    plan: (request: SpawnRequest) => Promise<ChildPlanned>,
  ): Promise<{ readonly quote: BatchQuote; readonly quoted: readonly (QuotedAgent | undefined)[] }>;
}

const plannedAlready = (plan: ChildPlan): ChildPlanned => ({ type: "planned", plan });

/** Definitions of these are the same in every folder, so that runs of other folders count. */
const sharedScopes: ReadonlySet<string> = new Set(["managed", "user", "plugin", "builtin"]);

export function openQuotes(
  runtime: Pick<FolderContext, "discovered" | "variables">,
  {
    tools,
    priceOf,
  }: { readonly tools: readonly Tool[]; readonly priceOf: (plan: ChildPlan) => Price | undefined },
): Quotes {
  const { settings, paths } = runtime.discovered;
  const { plain } = settings.settings;
  const history = createPastRuns(paths.transcripts);
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const toolTokens = (name: string): number | undefined => {
    const tool = byName.get(name);
    if (tool === undefined) return undefined;
    return estimateRequestTokens({ system: [], messages: [], tools: [specificationOf(tool)] });
  };
  const pastOf = ({ task, definition }: ChildPlan): Promise<readonly PastRun[]> =>
    history.of(task.agentType, { everywhere: sharedScopes.has(definition.source.scope) });
  const quote = (plan: ChildPlan, past: readonly PastRun[]): QuotedAgent =>
    quoteAgent(plan, { past, price: priceOf(plan), toolTokens });

  return {
    settings: plain.quotes,
    agent: async (plan) => quote(plan, await pastOf(plan)),
    async batch(requests, planOf) {
      const quoted: (QuotedAgent | undefined)[] = [];
      const refused: { agentType: string; reason: string }[] = [];
      // Many of a batch are of the same type.
      const past = new Map<string, Promise<readonly PastRun[]>>();
      const known = new Map<SpawnRequest | ChildPlan, QuotedAgent | undefined>();
      for (const request of requests) {
        // Many may be one and the same, as those of a loop.
        if (known.has(request)) {
          quoted.push(known.get(request));
          continue;
        }
        known.set(request, undefined);
        const planned = "task" in request ? plannedAlready(request) : await planOf(request);
        if (planned.type === "refused") {
          const { agentType = "general-purpose" } = "task" in request ? request.task : request;
          refused.push({ agentType, reason: planned.reason });
          quoted.push(undefined);
          continue;
        }
        const { plan } = planned;
        const runs = past.get(plan.task.agentType) ?? pastOf(plan);
        past.set(plan.task.agentType, runs);
        const agent = quote(plan, await runs);
        known.set(request, agent);
        quoted.push(agent);
      }
      const { maxRunning: places } = readChildLimits(plain.limits, runtime.variables.maxConcurrentSubagents);
      return {
        quote: quoteBatch(
          quoted.filter((agent) => agent !== undefined),
          { places, refused },
        ),
        quoted,
      };
    },
  };
}
