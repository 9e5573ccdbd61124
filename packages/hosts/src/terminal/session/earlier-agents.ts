import type { ListedTask } from "@retinue/core/kernel/project/project-tasks.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { openTasks } from "../../shared/open-project.ts";
import type { AgentSnapshot } from "./terminal-session.ts";

const maxAgents = 50;

/** The agents of a conversation as its files list them: those that have ended, the newest last. */
export async function earlierAgents(
  { host }: CommandContext,
  sessionId: string,
): Promise<readonly AgentSnapshot[]> {
  const tasks = await openTasks(host).list({ sessionId, limit: maxAgents });
  return tasks.flatMap(snapshotOf).toReversed();
}

function snapshotOf(task: ListedTask): readonly AgentSnapshot[] {
  const { id, state, parentId, depth, callId, name, agentType, description, background } = task;
  if (state === "running") return [];
  const isCut = state === "interrupted";
  return [
    {
      id,
      parentId,
      depth,
      callId,
      name: name ?? agentType,
      description,
      state: isCut ? "stopped" : state,
      isBackground: background,
      activity: "",
      tokens: task.tokens,
      costUsd: task.costUsd,
      startedAt: task.startedAt ?? task.lastSignAt,
      endedAt: task.lastSignAt,
      ...(isCut ? { reason: "the session ended; it can be resumed" } : {}),
    },
  ];
}
