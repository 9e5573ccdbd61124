import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import { createFeed } from "../foundation/feed.ts";
import type { SpawnRequest } from "../planning/spawn-request.ts";
import type { Spawner } from "./spawner.ts";
import type { TaskManager } from "./task-manager.ts";
import type { TaskState } from "./task-state.ts";

/** What a child gives back at its end, to the program that started it. */
export interface AgentResult extends RunEnding {
  readonly agentId: string;
  readonly agentType: string;
  /** Where its work can be followed. */
  readonly outputFile: string;
}

/** A child that a program has started: await it for the result, iterate it for what happens. */
export interface AgentHandle extends PromiseLike<AgentResult>, AsyncIterable<RunEvent> {
  /** Rejects only when the child could not be started. */
  readonly result: Promise<AgentResult>;
  /** Known once the child has started. */
  readonly id: Promise<string>;
  stop(): Promise<AgentResult>;
  /** From now on nobody is asked for it; the parent is told at its end. */
  detach(): Promise<void>;
  /** Read between its turns; one that has ended is taken up again by the next spawn with `resume`. */
  send(text: string): Promise<boolean>;
  state(): TaskState | undefined;
}

/** Where a child runs. */
export interface AgentHost {
  readonly spawner: Spawner;
  readonly tasks: TaskManager;
}

/** Starts a child as soon as its host is there. */
export function startAgent(request: SpawnRequest, host: AgentHost | Promise<AgentHost>): AgentHandle {
  const feed = createFeed<RunEvent>();
  let current: { readonly id: string; readonly tasks: TaskManager } | undefined;
  const started = begin();
  const result = follow();
  // Whoever only iterates, or only asks for the id, leaves these unheard.
  for (const promise of [result, started]) promise.catch(() => undefined);

  async function begin() {
    const { spawner, tasks } = await host;
    const news = tasks.watch();
    const outcome = await spawner.start(request).catch(async (error: unknown) => {
      await news.return?.();
      throw error;
    });
    if (outcome.type === "refused") {
      await news.return?.();
      throw new RetinueError("agent-refused", `The agent was not started: ${outcome.reason}`);
    }
    const { plan, outputFile } = outcome;
    current = { id: plan.agent.id, tasks };
    // Asked for now, since one that has ended is not known for ever.
    return { plan, outputFile, news, tasks, ended: tasks.ended(plan.agent.id) };
  }

  async function follow(): Promise<AgentResult> {
    try {
      const { plan, outputFile, news, ended } = await started;
      for await (const { event, state } of news) {
        if (state.id !== plan.agent.id) continue;
        feed.publish(event);
        if (event.type === "run-ended") break;
      }
      const state = await ended;
      if (state?.ending === undefined) throw new RetinueError("agent-lost", "The agent ended without saying how.");
      return { ...state.ending, agentId: plan.agent.id, agentType: plan.task.agentType, outputFile };
    } finally {
      feed.end();
    }
  }

  return {
    result,
    get id() {
      return started.then(({ plan }) => plan.agent.id);
    },
    // biome-ignore lint/suspicious/noThenProperty: a handle is awaited for its result
    then: (fulfilled, rejected) => result.then(fulfilled, rejected),
    [Symbol.asyncIterator]: () => feed.subscribe(),
    state: () => current?.tasks.get(current.id),
    async stop() {
      const { plan, tasks } = await started;
      await tasks.stop(plan.agent.id, "program");
      return result;
    },
    async detach() {
      const { plan, tasks } = await started;
      tasks.detach(plan.agent.id);
    },
    async send(text) {
      const { plan, tasks } = await started;
      return tasks.send(plan.agent.id, { role: "user", content: [{ type: "text", text }] });
    },
  };
}
