import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type FiredEvent, firedHookEvents } from "@retinue/core/kernel/hooks/list-hooks.ts";
import type { HookFunction } from "../../../../src/index.ts";
import type { ControlChannel } from "./control-channel.ts";

/** Hooks that a host registered as callbacks, for one event. */
export interface HostHook {
  readonly event: string;
  readonly matcher?: string;
  readonly callbackIds: readonly string[];
  readonly timeoutMs?: number;
  readonly blocksOnFailure: boolean;
}

/** Events that this program reports itself, because the runtime has no hook for them. */
export const observedEvents = [
  "PostToolBatch",
  "PermissionDenied",
  "StopFailure",
  "Elicitation",
  "ElicitationResult",
  "PreModelSwitch",
  "PostModelSwitch",
  "ConfigChange",
  "InstructionsLoaded",
  "UserPromptExpansion",
  "MessageDisplay",
  "DirectoryAdded",
  "TaskCreated",
  "TaskCompleted",
] as const;
export type ObservedEvent = (typeof observedEvents)[number];

/** What these report does not happen under a host, and none of them could hold anything up. */
const quietEvents: ReadonlySet<string> = new Set(["Setup", "CwdChanged", "FileChanged", "WorktreeRemove"]);

/** A host that makes worktrees itself is not asked to; calls that need one are refused instead. */
const worktreeEvent = "WorktreeCreate";

/** Reads `hooks` of `initialize`. Throws where a hook could not be run: a guard must not be dropped. */
export function readHostHooks(value: unknown): readonly HostHook[] {
  if (value === undefined || value === null) return [];
  if (!isRecord(value)) throw invalid("`hooks` must be an object keyed by event");
  return Object.entries(value).flatMap(([event, matchers]) => {
    if (!Array.isArray(matchers)) throw invalid(`the hooks of ${event} must be a list`);
    if (matchers.length > 0 && !isSupported(event))
      throw invalid(`hooks for the event ${JSON.stringify(event)} never run here`);
    return matchers.map((matcher: unknown) => readMatcher(event, matcher));
  });
}

function isSupported(event: string): boolean {
  if (event === worktreeEvent || quietEvents.has(event)) return true;
  return [...firedHookEvents, ...observedEvents].some((known) => known === event);
}

/** Registered events whose callbacks are never called, to be noted. */
export function neverCalled(hooks: readonly HostHook[]): readonly string[] {
  return [...new Set(hooks.map(({ event }) => event).filter((event) => quietEvents.has(event)))];
}

function readMatcher(event: string, value: unknown): HostHook {
  if (!isRecord(value)) throw invalid(`a matcher of ${event} must be an object`);
  const { matcher, hookCallbackIds: ids, timeout, onFailure } = value;
  if (!Array.isArray(ids) || !ids.every((id) => typeof id === "string"))
    throw invalid(`a matcher of ${event} has no list \`hookCallbackIds\``);
  if (matcher !== undefined && matcher !== null && typeof matcher !== "string")
    throw invalid(`the matcher of ${event} must be a string`);
  if (timeout !== undefined && timeout !== null && !(typeof timeout === "number" && timeout > 0))
    throw invalid(`the timeout of ${event} must be a number of seconds`);
  if (onFailure !== undefined && onFailure !== "continue" && onFailure !== "block")
    throw invalid(`onFailure of ${event} must be "continue" or "block"`);
  return {
    event,
    ...(typeof matcher === "string" ? { matcher } : {}),
    callbackIds: ids,
    ...(typeof timeout === "number" ? { timeoutMs: timeout * 1000 } : {}),
    // A guard that fails lets nothing through, unless its host says that it may.
    blocksOnFailure: onFailure === undefined ? event === "PreToolUse" : onFailure === "block",
  };
}

export interface DeferredCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

export interface HookReports {
  /** Notifies the host that a callback failed, and what follows from it. */
  warn(text: string): void;
  /** Shows a sentence of a callback to the person. */
  notify(text: string): void;
  /** A callback wants a call to wait until the session is resumed. */
  defer(call: DeferredCall): void;
  /** What a hook input has beyond what the runtime knows. */
  enrich(event: string, input: JsonRecord): JsonRecord;
}

/** The callbacks as hooks of the runtime. */
export function createHostHooks(
  hooks: readonly HostHook[],
  channel: Pick<ControlChannel, "ask">,
  reports: HookReports,
): readonly HookFunction[] {
  const callbacks = hooks.filter(isFired).flatMap((hook) =>
    hook.callbackIds.map(
      (id): HookFunction => ({
        event: hook.event,
        name: `callback ${id}`,
        matcher: hook.matcher,
        timeoutMs: hook.timeoutMs,
        run: (input, { signal }) => callBack({ hook, id, input, signal }, channel, reports),
      }),
    ),
  );
  const refusals = hooks.some(({ event }) => event === worktreeEvent) ? [refuseWorktrees] : [];
  return [...callbacks, ...refusals];
}

const refuseWorktrees: HookFunction = {
  event: "PreToolUse",
  matcher: "Agent",
  name: "the host makes worktrees",
  run({ tool_input: input }) {
    if (!isRecord(input) || input["isolation"] !== "worktree") return {};
    const reason = "the host makes worktrees itself (WorktreeCreate), which is not supported";
    return { decision: "block", reason };
  },
};

function isFired(hook: HostHook): hook is HostHook & { readonly event: FiredEvent } {
  return firedHookEvents.some((event) => event === hook.event);
}

interface Callback {
  readonly hook: HostHook;
  readonly id: string;
  readonly input: JsonRecord;
  readonly signal: AbortSignal;
}

export async function callBack(
  { hook, id, input, signal }: Callback,
  channel: Pick<ControlChannel, "ask">,
  reports: HookReports,
): Promise<JsonRecord> {
  const { event } = hook;
  const callId = input["tool_use_id"];
  try {
    const request = { subtype: "hook_callback", callback_id: id, input: reports.enrich(event, input) };
    const output = await channel.ask(
      typeof callId === "string" ? { ...request, tool_use_id: callId } : request,
      signal,
    );
    return output["async"] === true
      ? {}
      : withoutSystemMessage(deferring(output, input, reports), input, reports);
  } catch (error) {
    // A callback that took too long was withdrawn; the runtime decides what that means for the event.
    if (signal.aborted) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    if (hook.blocksOnFailure) {
      reports.warn(`The ${event} hook callback failed, which counts as a block: ${reason}`);
      return blocked(event, reason);
    }
    // At the end of a session the host may be gone already, and nothing follows from its answer.
    if (event !== "SessionEnd") reports.warn(`The ${event} hook callback failed: ${reason}`);
    return {};
  }
}

/** What a callback wants to say to the person is a message of its own. */
function withoutSystemMessage(output: JsonRecord, input: JsonRecord, reports: HookReports): JsonRecord {
  const { systemMessage, ...rest } = output;
  if (typeof systemMessage !== "string" || systemMessage === "") return output;
  const { hook_event_name: event, tool_name: tool } = input;
  reports.notify(`${event}${typeof tool === "string" ? `:${tool}` : ""} says: ${systemMessage}`);
  return rest;
}

/** A deferred call does not run, and the turn ends. */
function deferring(output: JsonRecord, input: JsonRecord, reports: HookReports): JsonRecord {
  const { hookSpecificOutput: specific } = output;
  if (!isRecord(specific) || specific["permissionDecision"] !== "defer") return output;
  reports.defer({
    id: String(input["tool_use_id"]),
    name: String(input["tool_name"]),
    input: input["tool_input"],
  });
  return {
    ...output,
    hookSpecificOutput: { ...specific, permissionDecision: "deny", permissionDecisionReason: "deferred" },
  };
}

const neverBlocked: ReadonlySet<string> = new Set(["Stop", "SubagentStop", "TaskCompleted", "TeammateIdle"]);

function blocked(event: string, failure: string): JsonRecord {
  if (neverBlocked.has(event)) return {};
  const reason = `the hook callback failed: ${failure}`;
  if (event === "PermissionRequest")
    return { hookSpecificOutput: { hookEventName: event, decision: { behavior: "deny", message: reason } } };
  return { decision: "block", reason };
}

function invalid(reason: string): RetinueError {
  return new RetinueError("invalid-initialize", `initialize cannot be honoured: ${reason}`);
}
