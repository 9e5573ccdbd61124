// @io
import { closeSync, constants, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { textOf } from "../conversation/message.ts";
import type { EventSink, RunEvent } from "../conversation/run-event.ts";
import { contextTokens } from "../conversation/usage.ts";
import { hasEnded, type TaskState } from "../protocol/agent-state.ts";
import type { TaskRunState, TaskSource, TaskView } from "../tools/task-source.ts";
import { pageOf } from "../tools/text-page.ts";
import type { EndedTask } from "./find-tasks.ts";
import { resultText, wholeText } from "./spawn-outcome.ts";
import type { TaskManager } from "./task-manager.ts";

/** The file in which a person can follow a child's work; it grows while the child continues. */
interface AgentOutput extends EventSink {
  readonly file: string;
  close(): void;
}

const shownEvents: ReadonlySet<RunEvent["type"]> = new Set([
  "assistant-answered",
  "call-started",
  "call-finished",
  "context-compacted",
  "run-idled",
  "run-ended",
]);

/** A link that was put in its place is not followed. */
const appendOnly = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0);

export function openAgentOutput(file: string): AgentOutput {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // Opening costs far more than writing, so the file stays open while the child runs.
  let descriptor: number | undefined;
  const write = (text: string): void => {
    descriptor ??= openSync(file, appendOnly, 0o600);
    writeSync(descriptor, `${text}\n`);
  };
  return {
    file,
    types: shownEvents,
    take(event) {
      switch (event.type) {
        case "assistant-answered": {
          const text = textOf(event.message).trim();
          if (text !== "") write(text);
          break;
        }
        case "call-started":
          write(`· ${event.call.name} ${JSON.stringify(event.call.input).slice(0, 200)}`);
          break;
        case "call-finished":
          if (event.denied !== undefined) write(`  not allowed: ${event.denied}`);
          break;
        case "context-compacted":
          write(`[the conversation was compacted from ${event.preTokens} to ${event.postTokens} tokens]`);
          break;
        case "run-idled":
        case "run-ended":
          write(`[${event.ending.status}: ${event.ending.reason}]`);
          break;
        default:
      }
    },
    close() {
      if (descriptor !== undefined) closeSync(descriptor);
      descriptor = undefined;
    },
  };
}

interface AgentTaskFiles {
  /** Undefined where nothing is kept. */
  readonly outputFile: (id: string) => string | undefined;
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
      const file = outputFile(id);
      return resultText({
        agentId: id,
        description: state.description,
        ending: state.ending,
        file,
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

function fileOf(outputFile: string | undefined): Pick<TaskView, "outputFile"> {
  return outputFile === undefined ? {} : { outputFile };
}

function viewOf(state: TaskState, outputFile: AgentTaskFiles["outputFile"]): TaskView {
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
    endedAt: state.endedAt,
    lastSignAt: state.lastSignAt,
    note,
    ...fileOf(outputFile(id)),
    metrics: {
      tokens: contextTokens(usage) + usage.outputTokens,
      toolUses: state.toolUses,
      turns: state.turns,
      ...(state.costUsd === undefined ? {} : { cost: state.costUsd }),
    },
  };
}

/** Times of files are not of the session's clock, so only how long it took is reported. */
function viewOfFiles({ task }: EndedTask, outputFile: string | undefined): TaskView {
  const { id, state, tokens, toolUses, costUsd: cost } = task;
  const tookMs = Math.max(0, task.lastSignAt - (task.startedAt ?? task.lastSignAt));
  const words = { partial: "completed", interrupted: "failed" } as const;
  return {
    id,
    kind: "agent",
    state: state === "partial" || state === "interrupted" ? words[state] : state,
    description: task.description,
    owner: task.parentId ?? "",
    agentId: id,
    startedAt: 0,
    endedAt: tookMs,
    lastSignAt: tookMs,
    note: task.reason,
    ...fileOf(outputFile),
    metrics: { tokens, toolUses, ...(cost === undefined ? {} : { cost }) },
  };
}

function stateWord(state: TaskState): TaskRunState {
  if (!hasEnded(state)) return "running";
  return state.status === "partial" ? "completed" : (state.status as "completed" | "failed" | "stopped");
}
