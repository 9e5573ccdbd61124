import { contextTokens } from "../conversation/usage.ts";
import type { TaskRunState, TaskSource, TaskView } from "../tools/task-source.ts";
import { resultText } from "./result-text.ts";
import type { TaskManager } from "./task-manager.ts";
import { hasEnded, type TaskState } from "./task-state.ts";

/** Lets TaskOutput and TaskStop reach child agents as they reach shells. */
export function createAgentTaskSource(tasks: TaskManager, outputFile: (id: string) => string): TaskSource {
  return {
    kind: "agent",
    find(id) {
      const state = tasks.get(id) ?? tasks.list().find(({ name }) => name === id);
      return state === undefined ? undefined : viewOf(state, outputFile);
    },
    list: () => tasks.list().map((state) => viewOf(state, outputFile)),
    async output(id) {
      const state = tasks.get(id);
      if (state === undefined) return "";
      if (state.ending === undefined) return state.lastText === "" ? "(nothing said so far)" : state.lastText;
      return resultText({
        agentId: id,
        description: state.description,
        ending: state.ending,
        file: outputFile(id),
      });
    },
    async ended(id) {
      await tasks.ended(id);
    },
    async stop(id) {
      await tasks.stop(id, "parent");
    },
  };
}

function viewOf(state: TaskState, outputFile: (id: string) => string): TaskView {
  const { id, usage } = state;
  const note = state.ending?.error ?? (state.activity === "" ? undefined : state.activity);
  return {
    id,
    kind: "agent",
    state: stateWord(state),
    description: state.description,
    owner: state.parentId,
    agentId: id,
    startedAt: state.startedAt,
    ...(state.endedAt === undefined ? {} : { endedAt: state.endedAt }),
    lastSignAt: state.lastSignAt,
    ...(note === undefined ? {} : { note }),
    outputFile: outputFile(id),
    metrics: {
      tokens: contextTokens(usage) + usage.outputTokens,
      toolUses: state.toolUses,
      turns: state.turns,
      ...(state.cost === undefined ? {} : { cost: state.cost }),
    },
  };
}

function stateWord(state: TaskState): TaskRunState {
  if (!hasEnded(state)) return "running";
  return state.status === "partial" ? "completed" : (state.status as "completed" | "failed" | "stopped");
}
