import type { Message, UserMessage } from "../conversation/message.ts";
import { addTotals, type RunEnding, type RunEvent } from "../conversation/run-event.ts";
import { runAgentLoop } from "../loop/agent-loop.ts";
import type { LoopInput, LoopPorts } from "../loop/loop-ports.ts";
import type { Model, ServerTool } from "../model/model.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import type { Tool, ToolContext } from "../tools/tool.ts";
import { type CanUseTool, createAdmit } from "./admit.ts";
import { type RunHandle, startRun } from "./run-handle.ts";
import { outputReminder, type TypedOutput } from "./typed-output.ts";

/** One conversation with the main agent, over any number of prompts. */
export interface Session extends AsyncDisposable {
  readonly plan: RunPlan;
  /** Starts the next run of the conversation; the one before must have ended. */
  prompt(content: UserMessage["content"], options?: { readonly signal?: AbortSignal }): RunHandle;
  /** The same as a bare stream of events, which runs only as fast as it is read. */
  stream(content: UserMessage["content"], signal: AbortSignal): AsyncIterable<RunEvent>;
  messages(): readonly Message[];
}

export interface SessionParts {
  readonly plan: RunPlan;
  readonly model: Model;
  readonly tools: readonly Tool[];
  readonly serverTools?: readonly ServerTool[];
  readonly history: readonly Message[];
  readonly toolContext: (call: {
    readonly callId: string;
    readonly signal: AbortSignal;
    readonly progress: (text: string) => void;
  }) => ToolContext;
  readonly canUseTool?: CanUseTool;
  readonly pathForms: (path: string) => Promise<readonly string[]>;
  readonly directory: () => string;
  readonly now: () => number;
  /** Writes an event down before the next one is asked for. */
  readonly record: (event: RunEvent) => void;
  readonly output?: TypedOutput;
  readonly dispose: () => Promise<void>;
}

/** How often an agent is reminded to hand in its typed result. */
const mostReminders = 5;

export function createSession(parts: SessionParts): Session {
  const { plan } = parts;
  const messages: Message[] = [...parts.history];
  const ports = createPorts(parts);
  let isFirst = parts.history.length === 0;

  async function* events(prompt: UserMessage, signal: AbortSignal): AsyncGenerator<RunEvent, void> {
    let next: UserMessage = prompt;
    let before: RunEnding | undefined;
    for (let reminders = 0; ; reminders += 1) {
      const last = joinEndings(before, yield* runOnce(next, signal));
      before = last;
      const handedIn = parts.output?.value();
      const isMissing = parts.output !== undefined && handedIn === undefined && last.status === "completed";
      if (isMissing && reminders < mostReminders) {
        next = { role: "user", content: [{ type: "text", text: outputReminder }] };
        continue;
      }
      const ending = finalEnding(last, { isMissing, ...(handedIn === undefined ? {} : { handedIn }) });
      yield { type: "run-ended", ending };
      return;
    }
  }

  /** Passes everything on but the end, which the caller decides about. */
  async function* runOnce(prompt: UserMessage, signal: AbortSignal): AsyncGenerator<RunEvent, RunEnding> {
    for await (const event of runAgentLoop(inputOf(plan, messages, prompt), ports, signal)) {
      if (event.type === "run-ended") return event.ending;
      parts.record(event);
      if (event.type === "user-added" || event.type === "assistant-answered") messages.push(event.message);
      yield event;
    }
    return unreachableEnding;
  }

  const stream = (content: UserMessage["content"], signal: AbortSignal): AsyncIterable<RunEvent> => {
    const first = isFirst ? withInitialPrompt(content, plan.initialPrompt) : content;
    isFirst = false;
    return events({ role: "user", content: first }, signal);
  };

  return {
    plan,
    messages: () => messages,
    stream,
    prompt: (content, options = {}) =>
      startRun({
        events: (signal) => stream(content, signal),
        sessionId: () => plan.sessionId,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      }),
    [Symbol.asyncDispose]: parts.dispose,
  };
}

function createPorts(parts: SessionParts): LoopPorts {
  const { output } = parts;
  return {
    model: parts.model,
    tools: output === undefined ? parts.tools : [...parts.tools, output.tool],
    ...(parts.serverTools === undefined ? {} : { serverTools: parts.serverTools }),
    admit: admitWithOutput(parts),
    toolContext: (callId, options) => parts.toolContext({ callId, ...options }),
    takeMessages: () => [],
    ...(output === undefined ? {} : { isFinished: () => output.value() !== undefined }),
    now: parts.now,
  };
}

/** Handing in the result is no action in the world and needs no permission. */
function admitWithOutput(parts: SessionParts): LoopPorts["admit"] {
  const admit = createAdmit(parts);
  return async (request, options) =>
    request.tool === parts.output?.tool ? { type: "allowed", input: request.input } : admit(request, options);
}

function inputOf(plan: RunPlan, history: readonly Message[], prompt: UserMessage): LoopInput {
  return {
    system: plan.system,
    history,
    prompt,
    maxTurns: plan.maxTurns?.value ?? Number.POSITIVE_INFINITY,
    ...(plan.maxBudget === undefined ? {} : { maxCost: plan.maxBudget.value }),
    ...(plan.reminder === undefined ? {} : { reminder: plan.reminder }),
    ...(plan.effort === undefined ? {} : { effort: plan.effort.value }),
  };
}

function withInitialPrompt(
  content: UserMessage["content"],
  initial: string | undefined,
): UserMessage["content"] {
  if (initial === undefined) return content;
  const blocks = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
  return [{ type: "text", text: initial }, ...blocks];
}

/** A run that had to be reminded is one run to its caller. */
function joinEndings(before: RunEnding | undefined, last: RunEnding): RunEnding {
  if (before === undefined) return last;
  return {
    ...last,
    denials: [...before.denials, ...last.denials],
    totals: addTotals(before.totals, last.totals),
  };
}

function finalEnding(
  last: RunEnding,
  result: { isMissing: boolean; handedIn?: { output: unknown } },
): RunEnding {
  if (result.handedIn !== undefined) return { ...last, output: result.handedIn.output };
  if (!result.isMissing) return last;
  const error = "The agent ended without handing in a result of the asked form.";
  return { ...last, status: "failed", reason: "max_structured_output_retries", error };
}

/** The loop always ends with `run-ended`; this only satisfies the type of a generator that cannot know it. */
const unreachableEnding: RunEnding = {
  status: "failed",
  reason: "no_end",
  text: "",
  denials: [],
  totals: {
    usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
    turns: 0,
    toolUses: 0,
    durationMs: 0,
    modelMs: 0,
  },
};
