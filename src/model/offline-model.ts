import type { AssistantBlock, AssistantMessage } from "../conversation/message.ts";
import { noUsage } from "../conversation/usage.ts";
import type { Model, ModelEvent, ModelFacts, ModelRequest } from "./model.ts";
import { maxOfflineCalls, type OfflineStep } from "./offline-call.ts";
import { type OfflineConversation, readOfflineConversation } from "./offline-conversation.ts";
import { findStep } from "./offline-find.ts";
import { mapStep } from "./offline-map.ts";
import { readStep } from "./offline-read.ts";
import { type OfflineTask, readOfflineTask } from "./offline-task.ts";
import { offlineAnswer, offlineLabel } from "./offline-texts.ts";

export const offlineFacts: ModelFacts = {
  id: "offline",
  provider: "offline",
  contextWindow: 200_000,
  maxOutputTokens: 32_000,
  price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  supportsServerTools: false,
};

const chunkLength = 400;

/**
 * Serves where no model is configured: a deterministic program, labelled as such, that drives the real tools by simple
 * rules. It reaches no network, costs nothing and never asks for a change.
 */
export function createOfflineModel(): Model {
  return {
    facts: offlineFacts,
    async *stream(request, { signal }) {
      signal.throwIfAborted();
      for (const event of answerEvents(request)) {
        yield event;
        signal.throwIfAborted();
      }
    },
  };
}

function* answerEvents(request: ModelRequest): Generator<ModelEvent> {
  const step = nextOfflineStep(request);
  const mark = markOf(request);
  const id = `msg_offline_${mark}_${countAnswers(request) + 1}`;
  const model = offlineFacts.id;
  const said: AssistantBlock = {
    type: "text",
    text: step.type === "answer" ? step.text : `[offline model] ${step.say}`,
  };
  const before = countCalls(request);
  const calls = (step.type === "calls" ? step.calls : []).map(
    ({ name, input }, at): AssistantBlock => ({
      type: "tool_use",
      id: `toolu_offline_${mark}_${before + at + 1}`,
      name,
      input,
    }),
  );
  const message: AssistantMessage = { role: "assistant", content: [said, ...calls] };
  yield { type: "message-started", id, model, usage: noUsage };
  for (const [index, block] of message.content.entries()) yield* blockEvents(block, index);
  const stopReason = calls.length > 0 ? "tool_use" : "end_turn";
  yield { type: "message-ended", id, model, message, stopReason, usage: noUsage };
}

function* blockEvents(block: AssistantBlock, index: number): Generator<ModelEvent> {
  if (block.type === "text") {
    yield { type: "block-started", index, block: { type: "text", text: "" } };
    for (const text of chunksOf(block.text)) yield { type: "text-delta", index, text };
  }
  if (block.type === "tool_use") {
    yield { type: "block-started", index, block: { ...block, input: {} } };
    yield { type: "input-delta", index, json: JSON.stringify(block.input) };
  }
  yield { type: "block-ended", index, block };
}

/** Pieces that end with a line where they can, and never in the middle of a pair. */
function chunksOf(text: string): readonly string[] {
  return text.match(new RegExp(`[\\s\\S]{1,${chunkLength}}(?:\\n|$)|[\\s\\S]{1,${chunkLength}}`, "gu")) ?? [];
}

function countAnswers({ messages }: ModelRequest): number {
  return messages.filter(({ role }) => role === "assistant").length;
}

function countCalls({ messages }: ModelRequest): number {
  return messages.flatMap(({ role, content }) =>
    role === "assistant" ? content.filter(({ type }) => type === "tool_use") : [],
  ).length;
}

/** Ids must differ between conversations that are shown side by side, and be the same when one is run again. */
function markOf({ system, messages }: ModelRequest): string {
  const text = JSON.stringify([system, messages[0] ?? ""]);
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(36);
}

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
