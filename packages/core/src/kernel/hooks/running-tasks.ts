import type { TaskState } from "../../protocol/agent-state.ts";
import { hasEnded } from "../../protocol/agent-state.ts";
import type { WorkflowRunState } from "../../protocol/workflow-state.ts";
import type { TaskView } from "../../tools/task-source.ts";

/** What continues in the background when an agent wants to stop, as its hooks see it. */
export interface RunningTask {
  readonly id: string;
  readonly type: "subagent" | "shell" | "workflow";
  readonly status: "running";
  readonly description: string;
  readonly command?: string | undefined;
  readonly agent_type?: string;
  /** Of a workflow. */
  readonly name?: string;
}

export function runningTasks({
  agents,
  workflows,
  commands,
}: {
  readonly agents: readonly TaskState[];
  readonly workflows: readonly WorkflowRunState[];
  readonly commands: readonly TaskView[];
}): readonly RunningTask[] {
  const status = "running" as const;
  return [
    ...agents
      .filter((agent) => agent.background && !hasEnded(agent))
      .map(({ id, description, agentType }) => ({
        ...{ id, type: "subagent" as const, status, description },
        agent_type: agentType,
      })),
    ...commands
      .filter(({ state }) => state === "running")
      .map(({ id, description, command }) => ({ id, type: "shell" as const, status, description, command })),
    ...workflows
      .filter((run) => run.status === "running")
      .map(({ taskId, description, name }) => ({
        ...{ id: taskId, type: "workflow" as const, status, description, name },
      })),
  ];
}
