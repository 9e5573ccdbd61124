import { randomBytes, randomUUID } from "node:crypto";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import type { SdkMessage } from "./sdk-messages.ts";

/** Commands that an agent waits for: one that takes long is reported as a task until it ends. */
export interface LongCommands {
  onEvent(event: RunEvent): void;
  /** Whether the call is such a command now. */
  isRunning(callId: string): boolean;
}

/** A command that takes longer than this is worth showing. */
const longMs = 3_000;

interface Running {
  readonly timer: NodeJS.Timeout;
  readonly description: string;
  /** Set when it was reported. */
  taskId?: string;
}

export function createLongCommands({
  emit,
  sessionId,
  delayMs = longMs,
}: {
  readonly emit: (message: SdkMessage) => void;
  readonly sessionId: () => string;
  readonly delayMs?: number;
}): LongCommands {
  const running = new Map<string, Running>();
  const system = (subtype: string, fields: JsonRecord): void =>
    emit({ type: "system", subtype, ...fields, uuid: randomUUID(), session_id: sessionId() });

  function begin(callId: string, description: string): void {
    const timer = setTimeout(() => {
      const taskId = `b${randomBytes(4).toString("hex")}`;
      running.set(callId, { timer, description, taskId });
      system("task_started", {
        task_id: taskId,
        tool_use_id: callId,
        description,
        task_type: "local_bash",
        is_backgrounded: false,
      });
    }, delayMs);
    timer.unref();
    running.set(callId, { timer, description });
  }

  function end(callId: string, isError: boolean): void {
    const command = running.get(callId);
    if (command === undefined) return;
    clearTimeout(command.timer);
    running.delete(callId);
    const { taskId, description } = command;
    if (taskId === undefined) return;
    system("task_notification", {
      task_id: taskId,
      tool_use_id: callId,
      status: isError ? "failed" : "completed",
      output_file: "",
      summary: description,
    });
  }

  return {
    isRunning: (callId) => running.has(callId),
    onEvent(event) {
      if (event.type === "call-finished") end(event.call.id, event.isError);
      if (event.type !== "call-started" || event.call.name !== "Bash") return;
      const { input, id } = event.call;
      if (!isRecord(input) || input["run_in_background"] === true) return;
      const { description, command } = input;
      begin(id, typeof description === "string" ? description : String(command));
    },
  };
}
