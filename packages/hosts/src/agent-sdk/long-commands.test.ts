import type { ToolUseBlock } from "@retinue/core/conversation/message.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { expect, test } from "vitest";
import { createLongCommands } from "./long-commands.ts";
import type { SdkMessage } from "./sdk-messages.ts";

const call = (id: string, more: object = {}): ToolUseBlock => ({
  type: "tool_use",
  id,
  name: "Bash",
  input: { command: "make", description: "builds", ...more },
});
// Only what is read of an event is given.
const started = (id: string, more = {}) => ({ type: "call-started", call: call(id, more) }) as RunEvent;
const finished = (id: string) => ({ type: "call-finished", call: call(id), isError: false }) as RunEvent;

test("a command that takes long is a task until it ends, and a short one or one in the background is none [DRP-1]", async () => {
  const sent: SdkMessage[] = [];
  let shown = Promise.withResolvers<void>();
  const commands = createLongCommands({
    delayMs: 1,
    sessionId: () => "s1",
    emit(message) {
      sent.push(message);
      shown.resolve();
    },
  });
  commands.onEvent(started("short"));
  commands.onEvent(finished("short"));
  commands.onEvent(started("aside", { run_in_background: true }));
  commands.onEvent(started("long"));
  await shown.promise;
  expect([commands.isRunning("long"), commands.isRunning("short")]).toEqual([true, false]);
  shown = Promise.withResolvers();
  commands.onEvent(finished("long"));
  const about = { tool_use_id: "long", session_id: "s1", task_id: expect.stringMatching(/^b/) };
  expect(sent).toMatchObject([
    { subtype: "task_started", description: "builds", is_backgrounded: false, ...about },
    { subtype: "task_notification", status: "completed", summary: "builds", ...about },
  ]);
});
