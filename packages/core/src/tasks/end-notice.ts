import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import type { InterruptedAgent } from "../conversation/interrupted-agent.ts";
import type { UserMessage } from "../conversation/message.ts";
import { contextTokens } from "../conversation/usage.ts";
import type { TaskState } from "../protocol/agent-state.ts";
import type { CommandRecord } from "../tools/command/command-record.ts";
import type { TaskView } from "../tools/task-source.ts";
import { inFlightText } from "./child-run.ts";

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

/** What a parent is shown about children that were cut off, once. */
export function interruptedNote(agents: readonly InterruptedAgent[]): UserMessage {
  const notes = agents.map((agent) =>
    [
      "<task-notification>",
      `<task-id>${agent.id}</task-id>`,
      `<status>${agent.standing === "resumed" ? "resumed" : "interrupted"}</status>`,
      `<summary>${sentence(agent)} ${advice(agent)}</summary>`,
      "</task-notification>",
    ].join("\n"),
  );
  return { role: "user", content: [{ type: "text", text: notes.join("\n") }] };
}

/**
 * What a conversation notes about children that were stopped with it. An agent that continues with it is informed of them again, so this is no
 * notice that counts as requested.
 */
export function stoppedNote(
  agents: readonly Pick<InterruptedAgent, "id" | "agentType" | "description">[],
): UserMessage {
  const lines = agents.map(
    ({ id, agentType, description }) =>
      `- ${id} (${escapeControlTags(agentType)}, ${JSON.stringify(escapeControlTags(description))})`,
  );
  const text = [
    "<agents-stopped>",
    "The session ended while these agents were running in the background. They are stopped, what they did is kept, and each can be resumed: call Agent with resume and its id.",
    ...lines,
    "</agents-stopped>",
  ].join("\n");
  return { role: "user", content: [{ type: "text", text }] };
}

/** The same in one line for the person. */
export function interruptedLine(agent: InterruptedAgent): string {
  const next = {
    resumed: "It continues in the background.",
    waiting: `Continue with it: retinue resume ${agent.id}`,
    lost: "Its task was not written down, so it cannot be resumed.",
  };
  return `${sentence(agent)} ${next[agent.standing]}`;
}

function sentence({ id, agentType, description, inFlight }: InterruptedAgent): string {
  const open =
    inFlight.length === 0
      ? ""
      : ` In flight: ${inFlight.map((call) => escapeControlTags(inFlightText(call))).join(", ")}.`;
  return `Agent ${id} (${escapeControlTags(agentType)}, ${JSON.stringify(escapeControlTags(description))}) was cut off when the session ended.${open}`;
}

function advice({ id, standing }: InterruptedAgent): string {
  if (standing === "resumed")
    return "It has been resumed and continues in the background; you are notified when it ends.";
  if (standing === "lost")
    return "It had not begun, and its task is not known: start another if it is still needed.";
  return `What it did is kept. To continue with it call Agent with resume: ${JSON.stringify(id)}; do not start another for the same task.`;
}
