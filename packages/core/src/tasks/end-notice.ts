import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import type { UserMessage } from "../conversation/message.ts";
import { contextTokens } from "../conversation/usage.ts";
import type { TaskState } from "../protocol/agent-state.ts";
import type { CommandRecord } from "../tools/command/command-record.ts";
import type { TaskView } from "../tools/task-source.ts";

/** What a parent is shown when a child in the background has ended. */
export function endNotice(
  state: TaskState,
  { outputFile, text }: { readonly outputFile: string | undefined; readonly text: string },
): UserMessage {
  const { usage, toolUses } = state;
  const duration = Math.round((state.endedAt ?? state.lastSignAt) - state.startedAt);
  const lines = [
    "<task-notification>",
    `<task-id>${state.id}</task-id>`,
    ...(outputFile === undefined ? [] : [`<output-file>${outputFile}</output-file>`]),
    `<status>${statusWord(state)}</status>`,
    `<summary>Agent ${JSON.stringify(escapeControlTags(state.description))} ${ending(state)}</summary>`,
    `<result>\n${text}\n</result>`,
    `<usage>subagent_tokens: ${contextTokens(usage) + usage.outputTokens}, tool_uses: ${toolUses}, duration_ms: ${duration}</usage>`,
    "</task-notification>",
  ];
  return { role: "user", content: [{ type: "text", text: lines.join("\n") }] };
}

/** What a parent is shown of a message that a child had taken and that could not reach it any more. */
export function lostMessageNotice(agentId: string, reason: string): UserMessage {
  const lines = [
    "<task-notification>",
    `<summary>Your message to the agent ${agentId} did not reach it before it ended: ${escapeControlTags(reason)}</summary>`,
    "</task-notification>",
  ];
  return { role: "user", content: [{ type: "text", text: lines.join("\n") }] };
}

/** What an agent that continues is shown about a command in the background that ended with it. */
export function commandNotice({ id, description, outputFile, end }: CommandRecord): UserMessage {
  const lines = [
    "<task-notification>",
    `<task-id>${id}</task-id>`,
    ...(outputFile === undefined ? [] : [`<output-file>${outputFile}</output-file>`]),
    "<status>stopped</status>",
    `<summary>Background command ${JSON.stringify(escapeControlTags(description))} no longer runs. ${end?.note ?? ""}</summary>`,
    "</task-notification>",
  ];
  return { role: "user", content: [{ type: "text", text: lines.join("\n") }] };
}

/** What an agent is shown when a command that it started in the background has ended by itself. */
export function commandEndNotice({
  id,
  description,
  outputFile,
  state,
  exitCode,
  note,
}: TaskView): UserMessage {
  const how =
    state === "timed-out" ? "was ended at its time limit" : `ended with the code ${exitCode ?? "unknown"}`;
  const lines = [
    "<task-notification>",
    `<task-id>${id}</task-id>`,
    ...(outputFile === undefined ? [] : [`<output-file>${outputFile}</output-file>`]),
    `<status>${state === "completed" ? "completed" : "failed"}</status>`,
    `<summary>Background command ${JSON.stringify(escapeControlTags(description))} ${how}.${note === undefined ? "" : ` ${note}`}</summary>`,
    "</task-notification>",
  ];
  return { role: "user", content: [{ type: "text", text: lines.join("\n") }] };
}

interface Stall {
  readonly silentMs: number;
  readonly stops: boolean;
}

/** What a parent is shown of a child in the background that has fallen silent. */
export function stallNotice(state: TaskState, stall: Stall): UserMessage {
  const lines = [
    "<task-notification>",
    `<task-id>${state.id}</task-id>`,
    "<status>stalled</status>",
    `<summary>${stallText(state, stall)}</summary>`,
    "</task-notification>",
  ];
  return { role: "user", content: [{ type: "text", text: lines.join("\n") }] };
}

export function stallText({ description }: TaskState, { silentMs, stops }: Stall): string {
  const what = `Agent ${JSON.stringify(escapeControlTags(description))} has given no sign of life for ${Math.round(silentMs / 1000)} s`;
  return stops
    ? `${what} and was stopped.`
    : `${what}; TaskStop ends it, else it is stopped after twice that time.`;
}

function statusWord({ status }: TaskState): string {
  return status === "partial" ? "completed" : status;
}

function ending({ status, ending: end }: TaskState): string {
  switch (status) {
    case "completed":
      return "finished";
    case "partial":
      return `handed in a partial result (${end?.reason ?? "a limit"})`;
    case "stopped":
      return `was stopped (${end?.reason ?? "stopped"})`;
    default:
      return `failed (${end?.reason ?? "error"})`;
  }
}
