import type { RunEnding, RunEvent } from "../../conversation/run-event.ts";
import { isRecord, type JsonRecord } from "../../foundation/json-record.ts";
import { matchSubject } from "../../hooks/match-subject.ts";
import type { ControlChannel } from "./control-channel.ts";
import { callBack, type HookReports, type HostHook, type ObservedEvent } from "./host-hooks.ts";
import { errorCategory, isProviderFailure } from "./sdk-messages.ts";

/** Callbacks for events that the runtime has no hooks for, reported from what the main agent does. */
export interface ObservedHooks {
  /** Reports what an event means to them before the run continues. */
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
  let finished: Extract<RunEvent, { type: "call-finished" }>[] = [];
  return {
    async hear(event, signal) {
      if (options.hooks.length === 0) return;
      if (event.type === "call-finished") {
        finished.push(event);
        if (event.denied === undefined) return;
        const { name, id, input } = event.call;
        const fields = { tool_name: name, tool_input: input, tool_use_id: id, reason: event.denied };
        await fire("PermissionDenied", { fields, signal, subject: name }, options);
      }
      if (event.type !== "user-added" || event.origin !== "tool-results" || finished.length === 0) return;
      const calls = finished.map(({ call, data, content }) => ({
        tool_name: call.name,
        tool_input: call.input,
        tool_use_id: call.id,
        tool_response: data ?? content,
      }));
      finished = [];
      await fire("PostToolBatch", { fields: { tool_calls: calls }, signal }, options);
    },
    async ended({ status, reason, error, text }) {
      finished = [];
      if (status !== "failed" || !isProviderFailure(reason)) return;
      const category = errorCategory(reason);
      const fields = { error: category, error_details: error, last_assistant_message: text };
      const { signal } = new AbortController();
      await fire("StopFailure", { fields, signal, subject: category }, options).catch(() => undefined);
    },
  };
}

interface Firing {
  readonly fields: JsonRecord;
  readonly signal: AbortSignal;
  readonly subject?: string;
}

async function fire(
  event: ObservedEvent,
  { fields, signal, subject = "" }: Firing,
  options: ObservedHookOptions,
): Promise<void> {
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
  for (const result of await Promise.allSettled(calls)) {
    const specific = result.status === "fulfilled" ? result.value["hookSpecificOutput"] : undefined;
    const text = isRecord(specific) ? specific["additionalContext"] : undefined;
    if (typeof text === "string" && text !== "") options.addContext(text);
  }
}
