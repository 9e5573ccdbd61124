import type { LoopPorts } from "../loop/loop-ports.ts";
import type { SpawnRequest } from "../planning/spawn-request.ts";
import type { Spawn, SpawnOutcome } from "../tasks/agent-tool.ts";
import type { Tool } from "../tools/tool.ts";

/** Starts of children that no call of the Agent tool asks for, decided about as if one did. */
export function authorizeStarts(tool: Tool, spawn: Spawn) {
  let authorize: LoopPorts["admit"] | undefined;
  return {
    attach(port: LoopPorts["admit"]): void {
      authorize = port;
    },
    async start(request: SpawnRequest, { signal }: { readonly signal: AbortSignal }): Promise<SpawnOutcome> {
      const input = {
        description: request.description,
        prompt: request.prompt,
        ...(request.agentType === undefined ? {} : { subagent_type: request.agentType }),
        ...(request.resume === undefined ? {} : { resume: request.resume }),
        ...(request.background === undefined ? {} : { run_in_background: request.background }),
      };
      const call = { type: "tool_use", id: request.callId ?? "message", name: tool.name, input } as const;
      const authorization = await authorize?.({ call, tool, input }, { signal });
      if (authorization?.type !== "allowed")
        return { type: "refused", reason: authorization?.reason ?? "The agent is not ready yet." };
      return spawn(request, { signal });
    },
  };
}
