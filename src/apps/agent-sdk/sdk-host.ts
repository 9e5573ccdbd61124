import { randomUUID } from "node:crypto";
import type { UserMessage } from "../../conversation/message.ts";
import type { RunEnding, RunEvent } from "../../conversation/run-event.ts";
import { noUsage } from "../../conversation/usage.ts";
import type { JsonRecord } from "../../foundation/json-record.ts";
import { isRetinueError, RetinueError } from "../../foundation/retinue-error.ts";
import { hasEnded } from "../../tasks/task-state.ts";
import type { CliHost } from "../cli/cli-host.ts";
import type { ControlChannel } from "./control-channel.ts";
import { initMessage } from "./init-message.ts";
import type { ObservedHooks } from "./observed-hooks.ts";
import { blocksOf, type PromptQueue, type QueuedPrompt } from "./prompt-queue.ts";
import { createSessionTotals, failureMessage, resultMessage, type SessionTotals } from "./result-message.ts";
import { type SdkMessage, sdkMessages } from "./sdk-messages.ts";
import type { OpenSdkSession } from "./session-adapter.ts";
import { createTaskMessages } from "./task-messages.ts";

export interface SdkHostOptions {
  readonly host: Pick<CliHost, "environment">;
  readonly channel: ControlChannel;
  readonly queue: PromptQueue;
  /** Opens the session, or the one that takes its place; a fresh one begins a new conversation. */
  readonly open: (fresh: boolean) => Promise<OpenSdkSession>;
  readonly lineIds: (event: RunEvent) => readonly string[];
  readonly mode: () => string | undefined;
  readonly model: () => string | undefined;
  readonly partial: boolean;
  readonly replay: boolean;
  readonly childText: () => boolean;
  readonly observed: () => ObservedHooks;
  /** Hears which event the running turn has come to, before the next one is asked for. */
  readonly reached: (event: RunEvent | undefined) => Promise<void>;
  /** Hears which prompt is worked on next. */
  readonly begins: (prompt: QueuedPrompt) => void;
  /** Refuses prompts where no real model answers. */
  readonly refuse: (session: OpenSdkSession["session"]) => void;
}

/** Works on the prompts of a host one after the other, and tells it everything that happens. */
export interface SdkHost {
  /** Resolves with the exit code when the input has ended and everything is done. */
  run(signal: AbortSignal): Promise<number>;
  /** Opens the session before the first prompt, so that it can be described. */
  ready(): Promise<OpenSdkSession>;
  current(): OpenSdkSession | undefined;
  /** Closes the session after the running turn and opens another in its place. */
  reopen(): Promise<OpenSdkSession>;
  /** Stops the running turn; false where none runs. */
  interrupt(stopsTasks: boolean): Promise<boolean>;
  inputEnded(): void;
  emit(message: SdkMessage): void;
  setState(state: "running" | "requires_action" | "idle"): void;
  readonly totals: SessionTotals;
  apiDurationMs(): number;
}

interface Turn {
  readonly controller: AbortController;
  inTools: boolean;
}

export function createSdkHost(options: SdkHostOptions): SdkHost {
  const { channel, queue } = options;
  const totals = createSessionTotals();
  let opened: Promise<OpenSdkSession> | undefined;
  let current: OpenSdkSession | undefined;
  let turn: Turn | undefined;
  let hasEndedInput = false;
  let lastIsError = false;
  let state: string | undefined;
  let apiMs = 0;
  const changes: (() => Promise<void>)[] = [];

  const emit = (message: SdkMessage): void => channel.send(message);
  const sessionId = (): string => current?.session.plan.sessionId ?? "";
  const uuid = (): string => randomUUID();

  function setState(next: string): void {
    if (state === next) return;
    state = next;
    const about = { uuid: uuid(), session_id: sessionId(), sdk_host_only: true };
    emit({ type: "system", subtype: "session_state_changed", state: next, ...about });
  }

  async function openNow(fresh = false): Promise<OpenSdkSession> {
    current = await options.open(fresh);
    totals.know(current.session.model);
    void watchTasks(current);
    return current;
  }

  function ready(): Promise<OpenSdkSession> {
    opened ??= openNow();
    return opened;
  }

  async function watchTasks(session: OpenSdkSession): Promise<void> {
    const messagesOf = createTaskMessages({
      sessionId: session.session.plan.sessionId,
      uuid,
      text: options.childText(),
      outputFile: session.outputFile,
      list: () => session.session.tasks.list(),
    });
    for await (const news of session.watchTasks()) {
      totals.add(news.event);
      for (const message of messagesOf(news)) emit(message);
      if (news.event.type === "run-ended") queue.ring();
    }
  }

  /** Tells of one turn from its beginning to its result. */
  async function runTurn(session: OpenSdkSession, given: QueuedPrompt, signal: AbortSignal): Promise<void> {
    const prompt = { ...given, uuid: given.uuid ?? uuid() };
    const controller = new AbortController();
    const running: Turn = { controller, inTools: false };
    turn = running;
    setState("running");
    let hasBegun = false;
    const begin = (): void => {
      if (hasBegun) return;
      hasBegun = true;
      emit(initMessage(session.session, initFacts(session)));
      if (options.replay) replayPrompt(prompt, session);
    };
    options.begins(prompt);
    const { content } = prompt;
    try {
      options.refuse(session.session);
      const ending = await follow(session, content, {
        signal: AbortSignal.any([signal, controller.signal]),
        running,
        begin,
      });
      begin();
      finish(session, ending, { prompt, interrupted: controller.signal.aborted, inTools: running.inTools });
    } catch (error) {
      if (signal.aborted) throw error;
      begin();
      finish(session, endingOf(error), { prompt, interrupted: controller.signal.aborted, inTools: false });
    } finally {
      turn = undefined;
      void options.reached(undefined);
    }
  }

  async function follow(
    session: OpenSdkSession,
    content: UserMessage["content"],
    around: { readonly signal: AbortSignal; readonly running: Turn; readonly begin: () => void },
  ): Promise<RunEnding> {
    for await (const event of session.turn(content, around.signal)) {
      if (event.type === "run-ended") return event.ending;
      around.begin();
      await options.reached(event);
      totals.add(event);
      if (event.type === "call-started") around.running.inTools = true;
      if (event.type === "turn-started") around.running.inTools = false;
      if (event.type === "assistant-answered") totals.know({ ...session.session.model, id: event.model });
      for (const message of messagesOf(event, session)) emit(message);
      await options.observed().hear(event, around.signal);
    }
    throw new RetinueError("run-without-end", "The run ended without saying how.");
  }

  function messagesOf(event: RunEvent, session: OpenSdkSession): readonly SdkMessage[] {
    return sdkMessages(event, {
      sessionId: session.session.plan.sessionId,
      uuid,
      lineIds: options.lineIds,
      partial: options.partial,
    });
  }

  function finish(
    session: OpenSdkSession,
    ending: RunEnding,
    about: { readonly prompt: QueuedPrompt; readonly interrupted: boolean; readonly inTools: boolean },
  ): void {
    const id = session.session.plan.sessionId;
    apiMs += ending.totals.modelMs;
    if (about.interrupted) emit(interruptedMessage(id, about.inTools));
    if (ending.reason === "prompt_blocked") emit(informational(ending.error ?? "", id));
    const failure = failureMessage(ending, { sessionId: id, uuid: uuid(), id: uuid() });
    if (failure !== undefined) emit(failure);
    void options.observed().ended(ending);
    const context = { sessionId: id, uuid: uuid(), totals, promptId: about.prompt.uuid };
    const result = resultMessage(ending, {
      ...context,
      interrupted: about.interrupted,
      inTools: about.inTools,
    });
    lastIsError = result["is_error"] === true;
    emit(result);
  }

  function replayPrompt(prompt: QueuedPrompt, session: OpenSdkSession): void {
    emit({
      ...prompt.line,
      type: "user",
      parent_tool_use_id: null,
      session_id: session.session.plan.sessionId,
      uuid: prompt.uuid ?? uuid(),
      isReplay: true,
    });
  }

  function initFacts(session: OpenSdkSession) {
    return {
      mode: options.mode() ?? session.initialMode,
      model: options.model() ?? session.session.plan.model.value,
      apiKeySource: keySource(session, options.host.environment),
      uuid: uuid(),
    };
  }

  /** The next prompt: of the host, or what children in the background have to report. */
  function nextPrompt(session: OpenSdkSession): QueuedPrompt | undefined {
    const prompt = queue.next();
    if (prompt !== undefined) return prompt;
    const content = session.takeReports();
    return content === undefined ? undefined : { content, line: reportLine(content), asks: true };
  }

  /** `/clear`: the next prompt begins a new conversation. */
  async function clear(session: OpenSdkSession, prompt: QueuedPrompt): Promise<void> {
    const before = session.session.plan.sessionId;
    setState("running");
    await session[Symbol.asyncDispose]();
    opened = openNow(true);
    const next = await opened;
    const about = { new_conversation_id: next.session.plan.sessionId, trigger: "clear", session_id: before };
    emit({ type: "conversation_reset", ...about, uuid: uuid() });
    emit(initMessage(next.session, initFacts(next)));
    const done = { ...endingOf(""), status: "completed", reason: "end_turn" } as const;
    finish(next, done, { prompt, interrupted: false, inTools: false });
  }

  async function applyChanges(): Promise<void> {
    for (let change = changes.shift(); change !== undefined; change = changes.shift()) await change();
  }

  return {
    totals,
    emit,
    setState,
    ready,
    apiDurationMs: () => Math.round(apiMs),
    current: () => current,
    inputEnded() {
      hasEndedInput = true;
      queue.ring();
    },
    reopen() {
      return new Promise((resolve, reject) => {
        changes.push(async () => {
          try {
            await current?.[Symbol.asyncDispose]();
            opened = openNow();
            resolve(await opened);
          } catch (error) {
            reject(error);
          }
        });
        queue.ring();
      });
    },
    async interrupt(stopsTasks) {
      const tasks = current?.session.tasks;
      const running = stopsTasks
        ? (tasks?.list().filter((task) => task.background && !hasEnded(task)) ?? [])
        : [];
      const isRunning = turn !== undefined;
      turn?.controller.abort(new RetinueError("aborted", "The host interrupted the turn."));
      await Promise.all(running.map(({ id }) => tasks?.stop(id, "user")));
      return isRunning;
    },
    async run(signal) {
      const stopped = new Promise<void>((resolve) =>
        signal.addEventListener("abort", () => resolve(), { once: true }),
      );
      try {
        while (!signal.aborted) {
          const bell = queue.wait();
          await applyChanges();
          const waiting = opened === undefined && !queue.hasPrompt() ? undefined : await ready();
          const isBusy = waiting?.hasBackgroundWork() === true;
          const prompt = waiting === undefined ? undefined : nextPrompt(waiting);
          if (waiting !== undefined && prompt !== undefined) {
            await (isClear(prompt) ? clear(waiting, prompt) : runTurn(waiting, prompt, signal));
            continue;
          }
          if (hasEndedInput && !isBusy) break;
          if (waiting !== undefined && state !== undefined && !isBusy) setState("idle");
          await Promise.race([bell, stopped]);
        }
      } finally {
        await current?.[Symbol.asyncDispose]();
      }
      if (state !== undefined) setState("idle");
      return lastIsError ? 1 : 0;
    },
  };
}

function isClear({ content }: QueuedPrompt): boolean {
  const [first, ...more] = blocksOf(content);
  return more.length === 0 && first?.type === "text" && first.text.trim() === "/clear";
}

function endingOf(error: unknown): RunEnding {
  const advice = isRetinueError(error) && error.advice !== undefined ? ` ${error.advice}` : "";
  const message = error instanceof Error ? error.message : String(error);
  return {
    status: "failed",
    reason: isRetinueError(error) ? error.code : "error",
    text: "",
    error: `${message}${advice}`,
    denials: [],
    totals: { usage: noUsage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0 },
  };
}

function interruptedMessage(sessionId: string, inTools: boolean): SdkMessage {
  const text = inTools ? "[Request interrupted by user for tool use]" : "[Request interrupted by user]";
  return {
    type: "user",
    message: { role: "user", content: [{ type: "text", text }] },
    parent_tool_use_id: null,
    session_id: sessionId,
    uuid: randomUUID(),
  };
}

export function informational(content: string, sessionId: string, level = "warning"): SdkMessage {
  return {
    type: "system",
    subtype: "informational",
    content,
    level,
    uuid: randomUUID(),
    session_id: sessionId,
  };
}

function reportLine(content: UserMessage["content"]): JsonRecord {
  return {
    type: "user",
    message: { role: "user", content: blocksOf(content) },
    isSynthetic: true,
    origin: { kind: "task-notification" },
  };
}

/** Which of the places a key can come from has one; never the key. */
export function keySource({ session }: OpenSdkSession, environment: CliHost["environment"]): string {
  if (session.model.provider !== "anthropic") return "none";
  const { env, plain } = session.discovered.settings.settings;
  const isSet = (name: string): boolean => (env.get(name) ?? environment[name] ?? "").trim() !== "";
  const variable = ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"].find(isSet);
  return variable ?? (plain.apiKeyHelper === undefined ? "none" : "apiKeyHelper");
}
