import type { LoopPorts } from "@retinue/core/loop/loop-ports.ts";
import { createSessionFiles } from "@retinue/core/tools/file-ledger.ts";
import type { ToolContext } from "@retinue/core/tools/tool.ts";

/** Ports of an agent in no real folder whose calls are all allowed, with a clock that counts how often it is read. */
export function barePorts(
  { model, tools }: Pick<LoopPorts, "model" | "tools">,
  agent: ToolContext["agent"] = { id: "a1", name: "main" },
): LoopPorts {
  let clock = 0;
  return {
    model,
    tools,
    authorize: async ({ input }) => ({ type: "allowed", input }),
    toolContext: (callId, options) => ({
      ...options,
      callId,
      directory: "/",
      workingDirectories: ["/"],
      sessionId: "s1",
      agent,
      agentPath: [agent],
      files: createSessionFiles().forAgent(),
      host: {},
      environment: {},
      outputDirectory: "/",
    }),
    takeMessages: () => [],
    now: () => {
      clock += 1;
      return clock;
    },
  };
}
