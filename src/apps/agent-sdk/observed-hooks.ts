import type { RunEnding, RunEvent } from "../../conversation/run-event.ts";
import type { JsonRecord } from "../../foundation/json-record.ts";
import { matchSubject } from "../../hooks/match-subject.ts";
import type { ControlChannel } from "./control-channel.ts";
import { callBack, type HookReports, type HostHook, type ObservedEvent } from "./host-hooks.ts";
import { errorCategory, isProviderFailure } from "./sdk-messages.ts";

/** Callbacks for events that the runtime has no hooks for, reported from what the main agent does. */
export interface ObservedHooks {
  /** Reports what an event means to them before the run goes on. */
  hear(event: RunEvent, signal: AbortSignal): Promise<void>;
  ended(ending: RunEnding): Promise<void>;
}

export interface ObservedHookOptions {
  readonly hooks: readonly HostHook[];
  readonly channel: Pick<ControlChannel, "ask">;
  readonly reports: HookReports;
  /** What every hook input says: session, transcript, folder, mode. */
  readonly situation: () => JsonRecord;
  /** Hands text of a hook to the model. */
  readonly addContext: (text: string) => void;
  readonly defaultTimeoutMs: number;
}

export function createObservedHooks(options: ObservedHookOptions): ObservedHooks {
  const { hooks, channel, reports } = options;
  let finished: Extract<RunEvent, { type: "call-finished" }>[] = [];

  async function fire(
    event: ObservedEvent,
    fields: JsonRecord,
    signal: AbortSignal,
    subject = "",
  ): Promise<void> {
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
    for (const result of await Promise.allSettled(calls)) {
      if (result.status === "rejected") continue;
      const specific = result.value["hookSpecificOutput"];
      const text: unknown =
        typeof specific === "object" && specific !== null
          ? Reflect.get(specific, "additionalContext")
          : undefined;
      if (typeof text === "string" && text !== "") options.addContext(text);
    }
  }

  return {
    async hear(event, signal) {
      if (hooks.length === 0) return;
      if (event.type === "call-finished") {
        finished.push(event);
        if (event.denied === undefined) return;
        const { name, id, input } = event.call;
        const fields = { tool_name: name, tool_input: input, tool_use_id: id, reason: event.denied };
        await fire("PermissionDenied", fields, signal, name);
      }
      if (event.type !== "user-added" || event.origin !== "tool-results" || finished.length === 0) return;
      const calls = finished.map(({ call, data, content }) => ({
        tool_name: call.name,
        tool_input: call.input,
        tool_use_id: call.id,
        tool_response: data ?? content,
      }));
      finished = [];
      await fire("PostToolBatch", { tool_calls: calls }, signal);
    },
    async ended({ status, reason, error, text }) {
      finished = [];
      if (status !== "failed" || !isProviderFailure(reason)) return;
      const fields = { error: errorCategory(reason), error_details: error, last_assistant_message: text };
      await fire("StopFailure", fields, new AbortController().signal, errorCategory(reason)).catch(
        () => undefined,
      );
    },
  };
}
