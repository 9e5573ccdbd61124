import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import type { UserMessage } from "../conversation/message.ts";
import type { TaskState } from "../protocol/agent-state.ts";
import type { StoppedBy, TaskEvent, TaskManager } from "../tasks/task-manager.ts";
import { checkOptions, checkPrompt } from "./options/check-options.ts";

/** The child agents of a session, as its program sees them. An id that is not known gives undefined or false. */
export interface SessionTasks {
  list(): readonly TaskState[];
  get(id: string): TaskState | undefined;
  /** The state when the child has ended, when it was moved to the background, or when the signal is aborted. */
  wait(id: string, options?: { readonly signal?: AbortSignal }): Promise<TaskState | undefined>;
  /** The state when the child has ended; moving it to the background does not count. */
  ended(id: string): Promise<TaskState | undefined>;
  /** Ends a child; its result names who ended it: the program, unless it says otherwise. */
  stop(id: string, by?: StoppedBy): Promise<TaskState | undefined>;
  /** Stops waiting: the caller is freed immediately and the child continues unattended. */
  detach(id: string): boolean;
  /** Between its turns the child reads it. False when it has ended or is not known. */
  send(id: string, message: string | UserMessage): boolean;
  /** The events of all children from now on. Leaving the loop, `return()` or the signal ends the watching. */
  watch(options?: { readonly signal?: AbortSignal }): AsyncIterableIterator<TaskEvent>;
  /** Calls back with each event as it happens; the returned function ends it. */
  onEvent(listener: (event: TaskEvent) => void): () => void;
}

const stoppers = ["user", "parent", "program", "session"] as const satisfies readonly StoppedBy[];

export function createSessionTasks(tasks: TaskManager): SessionTasks {
  const checkId = (method: string, id: unknown): void =>
    checkArgument(`The first argument of tasks.${method}()`, checks.filled, id);
  return {
    list: () => tasks.list(),
    get(id) {
      checkId("get", id);
      return tasks.get(id);
    },
    async wait(id, options = {}) {
      checkId("wait", id);
      checkOptions("tasks.wait", options);
      return tasks.wait(id, { signal: options.signal ?? new AbortController().signal });
    },
    async ended(id) {
      checkId("ended", id);
      return tasks.ended(id);
    },
    async stop(id, by = "program") {
      checkId("stop", id);
      checkArgument("The second argument of tasks.stop()", checks.oneOf(stoppers), by);
      return tasks.stop(id, by);
    },
    detach(id) {
      checkId("detach", id);
      return tasks.detach(id);
    },
    send(id, message) {
      checkId("send", id);
      if (typeof message === "string") {
        checkPrompt("tasks.send", message);
        return tasks.send(id, { role: "user", content: message });
      }
      checkArgument("The message of tasks.send()", checks.record, message);
      checkPrompt("tasks.send", message.content);
      return tasks.send(id, message);
    },
    watch(options = {}) {
      checkOptions("tasks.watch", options);
      const events = tasks.watch();
      const { signal } = options;
      if (signal?.aborted === true) void events.return?.();
      signal?.addEventListener("abort", () => void events.return?.(), { once: true });
      return events;
    },
    onEvent(listener) {
      checkArgument("The listener of tasks.onEvent()", checks.call, listener);
      return tasks.onEvent(listener);
    },
  };
}
