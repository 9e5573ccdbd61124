import { contextTokens } from "../conversation/usage.ts";
import type { TaskRunState, TaskSource, TaskView } from "../tools/task-source.ts";
import { pageOf } from "../tools/text-page.ts";
import { hasEnded, type TaskState } from "./drive-task.ts";
import type { EndedTask } from "./recovery/find-ended-task.ts";
import { resultText, wholeText } from "./result-text.ts";
import type { TaskManager } from "./task-manager.ts";

export interface AgentTaskFiles {
  readonly outputFile: (id: string) => string;
  /** Finds one that is not in memory any more. */
  readonly recall: (id: string) => Promise<EndedTask | undefined>;
}

/** Lets TaskOutput and TaskStop reach child agents as they reach shells. */
export function createAgentTaskSource(tasks: TaskManager, files: AgentTaskFiles): TaskSource {
  const { outputFile, recall } = files;
  return {
    kind: "agent",
    find(id) {
      const state = tasks.get(id) ?? tasks.list().find(({ name }) => name === id);
      return state === undefined ? undefined : viewOf(state, outputFile);
    },
    async recall(id) {
      const ended = await recall(id);
      if (ended === undefined) return undefined;
      return { task: viewOfFiles(ended, outputFile(id)), text: wholeText(ended) };
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
    async page(id, offset) {
      const state = tasks.get(id);
      return pageOf(wholeText({ text: state?.ending?.text ?? state?.lastText ?? "" }), offset);
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
      ...(state.costUsd === undefined ? {} : { cost: state.costUsd }),
    },
  };
}

/** Times of files are not of the session's clock, so only how long it took is reported. */
function viewOfFiles({ task }: EndedTask, outputFile: string): TaskView {
  const { id, state, tokens, toolUses, costUsd: cost } = task;
  const tookMs = Math.max(0, task.lastSignAt - (task.startedAt ?? task.lastSignAt));
  const words = { partial: "completed", interrupted: "failed" } as const;
  return {
    id,
    kind: "agent",
    state: state === "partial" || state === "interrupted" ? words[state] : state,
    description: task.description,
    owner: "",
    agentId: id,
    startedAt: 0,
    endedAt: tookMs,
    lastSignAt: tookMs,
    ...(task.reason === undefined ? {} : { note: task.reason }),
    outputFile,
    metrics: { tokens, toolUses, ...(cost === undefined ? {} : { cost }) },
  };
}

function stateWord(state: TaskState): TaskRunState {
  if (!hasEnded(state)) return "running";
  return state.status === "partial" ? "completed" : (state.status as "completed" | "failed" | "stopped");
}
