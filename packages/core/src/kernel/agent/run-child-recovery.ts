import { version } from "@retinue/base/foundation/version.ts";
import type { DiscoveredAgents } from "@retinue/config/agents/discover-agents.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import type { Model } from "../../models/model.ts";
import type { PlannedDefinition } from "../../planning/plan-run.ts";
import type { RunPlan } from "../../planning/plan-tools.ts";
import { loadEarlierRun } from "../../tasks/load-earlier-run.ts";
import { writeRecovery } from "../../tasks/write-recovery.ts";
import type { HookTools } from "../hooks/create-ask-model.ts";
import { openSessionHooks, type SessionHooks } from "../hooks/session-hooks.ts";
import type { RuntimeContext } from "../runtime-context.ts";

export interface ChildRecoveryParts {
  readonly services: HookTools & { readonly runtime: RuntimeContext };
  /** Reads the agents again. */
  readonly look: () => Promise<{ readonly discovered: Pick<DiscoveredAgents, "registry"> }>;
  /** Its definition, where that was found already. */
  readonly definition?: PlannedDefinition | undefined;
  readonly plan: RunPlan;
  readonly model: Model;
  /** Cuts hooks short. */
  readonly signal?: AbortSignal | undefined;
  readonly takeOver?: boolean | undefined;
}

/** How long hooks may take over the stop of a child whose process died. */
const hookLimitMs = 60_000;

/** Settles how the last run of a child ended whose process died: its stop hooks run once. */
export async function runChildRecovery(agentId: string, parts: ChildRecoveryParts): Promise<void> {
  const { plan } = parts;
  const { runtime } = parts.services;
  if (!runtime.keepsTranscripts) return;
  const files = sessionFiles(runtime.discovered.paths.transcripts, plan.sessionId).agent(agentId);
  const known = await loadEarlierRun(files);
  if (known === undefined) return;
  const hooks = await openStopHooks(
    { agentId, agentType: known.agentType, transcript: files.transcript },
    parts,
  );
  try {
    await writeRecovery({
      file: files.transcript,
      durability: runtime.durability,
      takeOver: parts.takeOver === true,
      ids: runtime.ids,
      now: runtime.epochMs,
      facts: {
        sessionId: plan.sessionId,
        agentId,
        cwd: plan.directory,
        version,
        entrypoint: runtime.entrypoint,
      },
      ...(hooks === undefined
        ? {}
        : {
            async reportStop(text) {
              const limit = AbortSignal.timeout(hookLimitMs);
              const { signal } = parts;
              await hooks.beforeEnd(text, {
                signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
              });
            },
          }),
    });
  } finally {
    await hooks?.end();
  }
}

async function openStopHooks(
  child: { readonly agentId: string; readonly agentType: string; readonly transcript: string },
  { services, look, plan, model, definition }: ChildRecoveryParts,
): Promise<SessionHooks | undefined> {
  return openSessionHooks({
    runtime: services.runtime,
    looking: services,
    plan: { ...plan, agent: { id: child.agentId, name: child.agentType } },
    model,
    definition: definition ?? (await findDefinition(child.agentType, look)),
    source: "resume",
    directory: () => plan.directory,
    child: { ...child, isOver: true },
  });
}

async function findDefinition(
  agentType: string,
  look: ChildRecoveryParts["look"],
): Promise<PlannedDefinition | undefined> {
  const found = (await look()).discovered.registry.find(agentType);
  return found.type === "found" ? found.agent.definition : undefined;
}
