import type { AssistantBlock, AssistantMessage } from "../../conversation/message.ts";
import { noUsage } from "../../conversation/usage.ts";
import type { Model, ModelEvent, ModelFacts, ModelRequest } from "../model.ts";
import { childrenOf, exploreCalls, planCalls, spawnToolName } from "./explore-calls.ts";
import { findStep } from "./find-step.ts";
import { filesDirectlyIn, type ListedFiles, listedFiles } from "./listed-files.ts";
import { mapReport } from "./map-report.ts";
import { offlineAnswer, offlineLabel } from "./offline-answer.ts";
import { callIfOffered, maxOfflineCalls, type OfflineCall, type OfflineStep } from "./offline-call.ts";
import { callsOf, type OfflineConversation, readOfflineConversation } from "./offline-conversation.ts";
import { type OfflineTask, readOfflineTask } from "./offline-task.ts";
import { readCountRemark } from "./read-listing.ts";
import { manifestNames } from "./read-manifest.ts";
import { readStep } from "./read-step.ts";

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
    "You ask for a change. The offline model makes none; here is what it can show you about the place.";
  return text.replace(offlineLabel, `${offlineLabel}\n\n${refusal}`);
}

/** How many files one look at their sizes lists; more would not fit into one answer of the tool. */
const filesPerLook = 500;

/** Lists the files, reads what describes the project (and sends children out where it can), then reports. */
function mapStep(conversation: OfflineConversation, folder: string | undefined): OfflineStep {
  const looked = callsOf(conversation, "Glob").length + callsOf(conversation, "Grep").length;
  if (looked === 0) return look(conversation, folder);
  const mayDelegate = folder === undefined && spawnToolName(conversation) !== undefined;
  const further = lookFurther(conversation, folder, mayDelegate);
  if (further.length > 0) return { type: "calls", say: "There are more files; listing on.", calls: further };
  const files = listedFiles(conversation);
  const hasRead = callsOf(conversation, "Read").length + childrenOf(conversation, "Explore").length > 0;
  if (!hasRead) {
    const children = mayDelegate ? exploreCalls(conversation, files) : [];
    const room = maxOfflineCalls - looked - (children.length > 0 ? children.length + 1 : 0);
    const reads = filesToRead(files, folder)
      .slice(0, Math.min(room, 4))
      .flatMap((file) => callIfOffered(conversation, "Read", { file_path: file, limit: 300 }));
    const calls = [...reads, ...children];
    if (calls.length > 0) return { type: "calls", say: sayNext(reads.length, children.length), calls };
  }
  const plan = mayDelegate ? planCalls(conversation, files) : [];
  if (plan.length > 0)
    return { type: "calls", say: "The children are back; one more plans a first reading.", calls: plan };
  return { type: "answer", text: mapReport(conversation, files, folder) };
}

function look(conversation: OfflineConversation, folder: string | undefined): OfflineStep {
  const path = pathOf(folder);
  const calls = [
    ...callIfOffered(conversation, "Glob", { pattern: "**/*", ...path }),
    ...callIfOffered(conversation, "Grep", countLines(path)),
  ];
  if (calls.length > 0) return { type: "calls", say: "Listing the files.", calls };
  const text = "A map needs the tool Glob or Grep, and neither is offered here.";
  return { type: "answer", text: offlineAnswer(text) };
}

/** Once more where the first list was too short for all files, as far as the calls that are still needed allow. */
function lookFurther(
  conversation: OfflineConversation,
  folder: string | undefined,
  mayDelegate: boolean,
): readonly OfflineCall[] {
  const counts = callsOf(conversation, "Grep");
  const [first] = counts;
  if (first === undefined || counts.length > 1) return [];
  const { total, shown } = readCountRemark(first.text);
  if (total === undefined || shown === undefined) return [];
  const needed = Math.ceil((total.files - shown) / filesPerLook);
  const pages = Math.min(needed, mayDelegate ? 1 : 2);
  return Array.from({ length: pages }, (_, at) => shown + at * filesPerLook).flatMap((offset) =>
    callIfOffered(conversation, "Grep", { ...countLines(pathOf(folder)), offset }),
  );
}

/** Every line matches, so the count of a file is its length. */
function countLines(path: { readonly path?: string }): Readonly<Record<string, unknown>> {
  return { pattern: "^", output_mode: "count", head_limit: filesPerLook, ...path };
}

function pathOf(folder: string | undefined): { readonly path?: string } {
  return folder === undefined || folder === "." ? {} : { path: folder };
}

function sayNext(reads: number, children: number): string {
  if (children === 0) return "Reading what describes the project.";
  const reading = reads === 0 ? "" : ", and reading what describes the project";
  return `Sending a child agent into each of the largest folders${reading}.`;
}

/** The README and manifests of the folder that is mapped. */
function filesToRead(files: ListedFiles, folder: string | undefined): readonly string[] {
  const here = filesDirectlyIn(files, folder);
  const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
  const readme = here.filter((path) => /^readme(?:\.\w+)?$/i.test(nameOf(path))).slice(0, 1);
  const manifests = manifestNames.flatMap((name) => here.filter((path) => nameOf(path) === name));
  return [...readme, ...manifests];
}
