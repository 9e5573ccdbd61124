import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import type { InterruptedAgent } from "../conversation/interrupted-agent.ts";
import type { UserMessage } from "../conversation/message.ts";
import { inFlightText } from "./child-run.ts";

/** What the main agent is shown about all of them, once. */
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
 * What a conversation says of children that were stopped with it. The one that continues with it is informed of them again, so this is no
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
