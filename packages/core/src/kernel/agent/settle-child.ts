import { version } from "@retinue/base/foundation/version.ts";
import type { PlannedDefinition } from "../../planning/agent-plan.ts";
import { loadEarlierRun } from "../../tasks/child-run.ts";
import { writeRecovery } from "../../tasks/write-recovery.ts";
import { openSessionHooks } from "../hooks/session-hooks.ts";
import type { ChildSession } from "./child-session.ts";

/** How long hooks may take over the stop of a child whose process died. */
const hookLimitMs = 60_000;

/** Settles how the last run of a child ended whose process died: its stop hooks run once. */
export async function settleChild(
  agentId: string,
  {
    services,
    loadRegistry,
    parent: { plan, model },
    takeOver,
  }: Pick<ChildSession, "services" | "loadRegistry" | "parent" | "takeOver">,
  {
    definition,
    signal,
  }: {
    /** Its definition, where that was found already. */
    readonly definition?: PlannedDefinition;
    /** Cuts hooks short. */
    readonly signal?: AbortSignal | undefined;
  },
): Promise<void> {
  const { runtime } = services;
  if (!runtime.keepsTranscripts) return;
  const files = services.files.agent(agentId);
  const known = await loadEarlierRun(files);
  if (known === undefined) return;
  const { agentType } = known;
  const find = async (): Promise<PlannedDefinition | undefined> => {
    const found = (await loadRegistry()).discovered.registry.find(agentType);
    return found.type === "found" ? found.agent.definition : undefined;
  };
  const hooks = await openSessionHooks({
    runtime,
    looking: services,
    plan: { ...plan, agent: { id: agentId, name: agentType } },
    model,
    definition: definition ?? (await find()),
    source: "resume",
    directory: () => plan.directory,
    child: { agentId, agentType, transcript: files.transcript, isOver: true },
  });
  try {
    await writeRecovery({
      file: files.transcript,
      durability: runtime.durability,
      takeOver,
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
