import { randomUUID } from "node:crypto";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { RunEnding, RunEvent } from "@retinue/core/conversation/run-event.ts";
import { matchSubject } from "@retinue/core/kernel/hooks/list-hooks.ts";
import { apiFailureOf, finalCategory, isProviderFailure } from "./api-failure.ts";
import type { ControlChannel } from "./control-channel.ts";
import { callBack, type HookReports, type HostHook, type ObservedEvent } from "./host-hooks.ts";

/** Callbacks for events that the runtime has no hooks for, reported from what the main agent does. */
export interface ObservedHooks {
  /** Reports the texts of an answer before the host gets them. */
  display(event: RunEvent, signal: AbortSignal): Promise<void>;
  /** Reports what an event means to them before the run continues. */
  onEvent(event: RunEvent, signal: AbortSignal): Promise<void>;
  ended(ending: RunEnding): Promise<void>;
  /** Calls back for something that happens beside the run, and gives back what was answered. */
  fire(event: ObservedEvent, firing: Firing): Promise<readonly JsonRecord[]>;
}

export interface ObservedHookOptions {
  readonly hooks: readonly HostHook[];
  readonly channel: Pick<ControlChannel, "ask">;
  readonly reports: HookReports;
  /** What every hook input has: session, transcript, folder, mode. */
  readonly situation: () => JsonRecord;
  /** Hands text of a hook to the model. */
  readonly addContext: (text: string) => void;
  /** Ends the run of the main agent after this turn. */
  readonly stopRun: () => void;
  readonly defaultTimeoutMs: number;
}

export function createObservedHooks(options: ObservedHookOptions): ObservedHooks {
  let finished: Extract<RunEvent, { type: "call-finished" }>[] = [];
  let shown = 0;
  return {
    async display(event, signal) {
      if (!options.hooks.some(({ event: name }) => name === "MessageDisplay")) return;
      const texts = textsOf(event);
      // What was not streamed is shown with the whole answer.
      const fresh = event.type === "assistant-answered" ? texts.slice(shown) : texts;
      for (const text of fresh) await reportDisplay(text, signal, options);
      shown = event.type === "assistant-answered" ? 0 : shown + fresh.length;
    },
    fire: (event, firing) => fire(event, firing, options),
    async onEvent(event, signal) {
      if (options.hooks.length === 0) return;
      if (event.type === "call-finished") {
        finished.push(event);
        if (event.denied === undefined) return;
        const { name, id, input } = event.call;
        const fields = { tool_name: name, tool_input: input, tool_use_id: id, reason: event.denied };
        await fire("PermissionDenied", { fields, signal, subject: name }, options);
      }
      if (event.type !== "user-added" || event.origin !== "tool-results" || finished.length === 0) return;
      const calls = finished.map(({ call, content }) => ({
        tool_name: call.name,
        tool_input: call.input,
        tool_use_id: call.id,
        tool_response: content,
      }));
      finished = [];
      const outputs = await fire("PostToolBatch", { fields: { tool_calls: calls }, signal }, options);
      if (outputs.some(isBlocking)) options.stopRun();
    },
    async ended(ending) {
      const { status, reason, error, text } = ending;
      finished = [];
      if (status !== "failed" || !isProviderFailure(reason)) return;
      const category = finalCategory(reason);
      const lastMessage = apiFailureOf(ending)?.text ?? text;
      const fields = { error: category, error_details: error, last_assistant_message: lastMessage };
      const { signal } = new AbortController();
      await fire("StopFailure", { fields, signal, subject: category }, options).catch(() => undefined);
    },
  };
}

function textsOf(event: RunEvent): readonly string[] {
  if (event.type === "assistant-answered")
    return event.message.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const isBlock = event.type === "model-streamed" && event.event.type === "block-ended";
  return isBlock && event.event.block.type === "text" ? [event.event.block.text] : [];
}

/** What an answer says is shown whole, so each of its texts is one delta. */
async function reportDisplay(text: string, signal: AbortSignal, options: ObservedHookOptions): Promise<void> {
  const ids = { turn_id: randomUUID(), message_id: randomUUID() };
  const fields = { ...ids, index: 0, final: true, delta: text };
  await fire("MessageDisplay", { fields, signal }, options);
}

/** From the words by which the prompt says where instructions come from. */
const memoryTypes: readonly (readonly [words: RegExp, type: string])[] = [
  [/organisation/, "Managed"],
  [/only/, "Local"],
  [/user/, "User"],
];

/** Reports the files of instructions that a session was opened with. */
export async function reportInstructions(
  system: readonly string[],
  hooks: Pick<ObservedHooks, "fire">,
  signal: AbortSignal,
): Promise<void> {
  for (const [, file = "", from = ""] of system
    .join("\n")
    .matchAll(/<instructions file="([^"]*)" from="([^"]*)"/g)) {
    const [, memory_type = "Project"] = memoryTypes.find(([words]) => words.test(from)) ?? [];
    const fields = { file_path: file, memory_type, load_reason: "session_start" };
    await hooks.fire("InstructionsLoaded", { fields, signal, subject: "session_start" });
  }
}

/** Whether a callback wants that what it was called for does not continue. */
export function isBlocking(output: JsonRecord): boolean {
  return output["decision"] === "block" || output["continue"] === false;
}

export interface Firing {
  readonly fields: JsonRecord;
  readonly signal: AbortSignal;
  readonly subject?: string;
}

async function fire(
  event: ObservedEvent,
  { fields, signal, subject = "" }: Firing,
  options: ObservedHookOptions,
): Promise<readonly JsonRecord[]> {
  const { hooks, channel, reports } = options;
  const matching = hooks.filter(
    (hook) => hook.event === event && matchSubject(hook.matcher, subject) !== "no-match",
  );
  const input = { ...options.situation(), hook_event_name: event, ...fields };
  const calls = matching.flatMap((hook) =>
    hook.callbackIds.map((id) => {
      const limit = AbortSignal.timeout(hook.timeoutMs ?? options.defaultTimeoutMs);
      return callBack({ hook, id, input, signal: AbortSignal.any([signal, limit]) }, channel, reports);
    }),
  );
  const settled = await Promise.allSettled(calls);
  const outputs = settled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  for (const output of outputs) {
    const text = specificOf(output)["additionalContext"];
    if (typeof text === "string" && text !== "") options.addContext(text);
  }
  return outputs;
}

export function specificOf({ hookSpecificOutput: specific }: JsonRecord): JsonRecord {
  return isRecord(specific) ? specific : {};
}
