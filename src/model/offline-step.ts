import type { ModelRequest } from "./model.ts";
import { maxOfflineCalls, type OfflineStep } from "./offline-call.ts";
import { type OfflineConversation, readOfflineConversation } from "./offline-conversation.ts";
import { findStep } from "./offline-find.ts";
import { mapStep } from "./offline-map.ts";
import { readStep } from "./offline-read.ts";
import { type OfflineTask, readOfflineTask } from "./offline-task.ts";
import { offlineAnswer, offlineLabel } from "./offline-texts.ts";

/** What the offline model does next, from the conversation alone: the same request always gets the same answer. */
export function nextOfflineStep(request: ModelRequest): OfflineStep {
  const conversation = readOfflineConversation(request);
  const { task, wantsChange } = readOfflineTask(conversation.task);
  const step = stepFor(task, conversation);
  if (step.type === "answer") return wantsChange ? { ...step, text: withRefusal(step.text) } : step;
  const calls = step.calls.slice(0, maxOfflineCalls - conversation.calls.length);
  if (calls.length > 0) return { ...step, calls };
  const text = `The offline model makes at most ${maxOfflineCalls} calls for a question, and they are used up.`;
  return { type: "answer", text: offlineAnswer(text) };
}

function stepFor(task: OfflineTask, conversation: OfflineConversation): OfflineStep {
  switch (task.type) {
    case "map":
      return mapStep(conversation, task.folder);
    case "find":
      return findStep(conversation, task.subject);
    case "read":
      return readStep(conversation, task.file);
  }
}

function withRefusal(text: string): string {
  const refusal =
    "You ask for a change. The offline model makes none; here is what it can tell you about the place.";
  return text.replace(offlineLabel, `${offlineLabel}\n\n${refusal}`);
}
