import { version } from "../foundation/version.ts";
import { sessionFiles } from "../journal/session-files.ts";
import type { Model } from "../model/model.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import { loadEarlierRun } from "../tasks/load-earlier-run.ts";
import { writeRecovery } from "../tasks/write-recovery.ts";
import { openSessionHooks, type SessionHooks } from "./session-hooks.ts";
import type { RuntimeContext } from "./session-world.ts";

export interface ChildRecoveryParts {
  readonly world: RuntimeContext;
  /** Looks at the agents anew. */
  readonly look: () => Promise<RuntimeContext>;
  readonly plan: RunPlan;
  readonly model: Model;
  /** Cuts hooks short. */
  readonly signal?: AbortSignal | undefined;
}

/** How long hooks may take over the stop of a child whose process died. */
const hookLimitMs = 60_000;

/** Settles how the last run of a child ended whose process died: its hooks hear of its stop once. */
export async function runChildRecovery(agentId: string, parts: ChildRecoveryParts): Promise<void> {
  const { world, plan } = parts;
  if (!world.keepsTranscripts) return;
  const files = sessionFiles(world.discovered.paths.transcripts, plan.sessionId).agent(agentId);
  const known = await loadEarlierRun(files);
  if (known === undefined) return;
  const hooks = await openStopHooks(
    { agentId, agentType: known.agentType, transcript: files.transcript },
    parts,
  );
  try {
    await writeRecovery({
      file: files.transcript,
      ids: world.ids,
      now: () => world.today().getTime(),
      facts: {
        sessionId: plan.sessionId,
        agentId,
        cwd: plan.directory,
        version,
        entrypoint: world.entrypoint,
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
  { world, look, plan, model }: ChildRecoveryParts,
): Promise<SessionHooks | undefined> {
  const found = (await look()).discovered.registry.find(child.agentType);
  return openSessionHooks({
    world,
    plan: { ...plan, agent: { id: child.agentId, name: child.agentType } },
    model,
    definition: found.type === "found" ? found.agent.definition : undefined,
    source: "resume",
    directory: () => plan.directory,
    child: { ...child, isOver: true },
  });
}
