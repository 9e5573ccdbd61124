import { sessionFiles } from "../journal/session-files.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import { createSessionFiles } from "../tools/file-ledger.ts";
import type { ToolContext } from "../tools/tool.ts";
import { createMayRead } from "./find-readable-files.ts";
import { createMemoryTurns } from "./memory-turns.ts";
import type { RuntimeContext } from "./session-world.ts";

/** Contexts of one session: each agent knows what it has read itself, and all know who changed what. */
export function createToolContexts(world: RuntimeContext, added: ReadonlyMap<string, string> = new Map()) {
  const { paths } = world.discovered;
  const sessionLedger = createSessionFiles();
  // `~` must mean to the tools what it means to the rules.
  const environment = () => ({ ...world.environment, ...Object.fromEntries(added), HOME: paths.home });
  return (plan: RunPlan, directory: () => string) => {
    const files = sessionLedger.forAgent();
    const mayRead = createMayRead(plan);
    const writeInTurn = createMemoryTurns(plan, paths);
    return (
      call: Pick<ToolContext, "callId" | "signal" | "progress" | "allowedBy" | "decidedPaths" | "judged">,
    ): ToolContext => ({
      ...call,
      directory: directory(),
      workingDirectories: plan.policy.workingDirectories,
      agent: plan.agent,
      files,
      host: world.host,
      environment: environment(),
      outputDirectory: sessionFiles(paths.transcripts, plan.sessionId).toolResults,
      writeInTurn,
      ...(mayRead === undefined ? {} : { mayRead }),
    });
  };
}
