import * as acp from "@agentclientprotocol/sdk";
import { abortable, sleep } from "@retinue/base/foundation/abortable.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type Message, textOf, type UserMessage } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { noUsage, type Usage } from "../conversation/usage.ts";
import {
  endingOfCause,
  isLimitError,
  type LimitReached,
  type LoopInput,
  type LoopPorts,
  limitError,
} from "../loop/loop-ports.ts";
import { createTally } from "../loop/tally.ts";
import type { PlannedRunner } from "../planning/agent-plan.ts";
import type { AgentBudget } from "../tasks/tree-budget.ts";
import {
  askProgram,
  checkAnswer,
  connectRunner,
  programError,
  type RunnerConnection,
} from "./connect-runner.ts";
import { createEventChannel, type EventChannel } from "./event-channel.ts";
import { createRunnerJournal, type RunnerJournal } from "./runner-journal.ts";
import { type RunnerService, serveRunner } from "./serve-runner.ts";

/** What an agent needs of this process so that a program of another vendor does its work. */
export interface RunnerSetup {
  readonly runner: PlannedRunner;
  readonly directory: string;
  /** The program as it is started, perhaps in a sandbox; rejects where it must not start. */
  readonly prepare: (signal: AbortSignal) => Promise<PreparedRunner>;
  readonly servers: readonly acp.McpServer[];
  readonly budget: Pick<AgentBudget, "isLimited" | "reserve" | "refusal">;
}

export interface PreparedRunner {
  readonly file: string;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Called once nothing of it runs any more. */
  readonly ended?: () => void;
}

/** A program that reports nothing for so long, while it waits for nothing of ours, does no work. */
const silentMs = 15 * 60_000;
/** After a cancel a program may end its turn by itself. */
const cancelMs = 1000;

/**
 * One agent carried out by a program of another vendor, in the place of our own loop: the same input and ports, the same
 * events, and as the last of them always `run-ended`. Nothing is thrown.
 */
export async function* runRunner(
  input: LoopInput,
  ports: LoopPorts,
  { setup, signal }: { readonly setup: RunnerSetup; readonly signal: AbortSignal },
): AsyncGenerator<RunEvent, void> {
  const tally = createTally(ports.now);
  const channel = createEventChannel();
  const stop = new AbortController();
  const whole = AbortSignal.any([signal, stop.signal]);
  const state: RunState = { input, ports, setup, tally, channel, signal: whole, stop };
  let ending: Ending | undefined;
  const work = drive(state)
    .catch((error: unknown): Ending => {
      const isStopped = signal.aborted && !(stop.signal.aborted && isLimitError(stop.signal.reason));
      const broken: unknown = stop.signal.aborted ? stop.signal.reason : error;
      const cause: unknown = isStopped ? signal.reason : broken;
      return { ...endingOfCause(cause, isStopped || isByPerson(cause)), text: tally.lastText() };
    })
    .then((given) => {
      ending = given;
      channel.end();
    });
  try {
    yield* channel;
  } catch (error) {
    // What cannot be recorded must not continue.
    stop.abort(error);
  } finally {
    if (ending === undefined)
      stop.abort(stop.signal.reason ?? new RetinueError("aborted", "Its events are not being read."));
    await work;
  }
  const last: Ending = ending ?? { status: "failed", reason: "error", text: tally.lastText() };
  const receipt = await ports.verify?.receipt({ status: last.status, text: last.text }, { signal });
  yield {
    type: "run-ended",
    ending: { ...last, ...tally.result(), ...(receipt === undefined ? {} : { receipt }) },
  };
}

type Ending = Pick<RunEnding, "status" | "reason" | "text" | "error" | "advice">;

interface RunState {
  readonly input: LoopInput;
  readonly ports: LoopPorts;
  readonly setup: RunnerSetup;
  readonly tally: ReturnType<typeof createTally>;
  readonly channel: EventChannel;
  /** Aborted with the run, and when a limit or a person ends it. */
  readonly signal: AbortSignal;
  readonly stop: AbortController;
}

const stoppedByPerson = "stopped_by_person";

function isByPerson(cause: unknown): boolean {
  return cause instanceof RetinueError && cause.code === stoppedByPerson;
}

/** Starts the program, gives it its prompts one after the other, and ends it. */
async function drive(state: RunState): Promise<Ending> {
  const { ports, setup, channel, tally, signal, stop, input } = state;
  const { runner } = setup;
  const prepared = await setup.prepare(signal);
  const watch = watchSilence(runner.name, stop);
  const money = createMoney(state);
  let service: RunnerService | undefined;
  const journal = createRunnerJournal({
    model: runner.name,
    channel,
    tally,
    now: ports.now,
    cost: money.report,
    ended: (id, outcome) => service?.ended(id, outcome),
  });
  service = serveRunner({
    ports,
    journal,
    channel,
    tally,
    signal,
    busy: watch.hold,
    stop: (why) =>
      stop.abort(
        why === "person"
          ? new RetinueError(stoppedByPerson, "The person who was asked ended the run.")
          : limitError(why),
      ),
  });
  // What a session sends while it is loaded was sent before.
  let isOpen = false;
  const update = (notification: unknown): void => {
    watch.sign();
    if (!isOpen) return;
    try {
      journal.take(notification);
      if (journal.turns() > input.maxTurns) stop.abort(limitError(turnsReached(input.maxTurns)));
    } catch (error) {
      stop.abort(error);
    }
  };
  let connection: RunnerConnection | undefined;
  let sessionId: string | undefined;
  try {
    connection = await connectRunner(
      { name: runner.name, directory: setup.directory, ...prepared },
      { ...service, update },
      signal,
    );
    sessionId = await openSession(connection, state);
    await channel.push({ type: "runner-opened", runner: runner.name, session: sessionId });
    await ports.commit?.();
    isOpen = true;
    return await converse({ ...state, connection, sessionId, journal, money });
  } finally {
    watch.end();
    await connection?.close(sessionId);
    await service.close();
    journal.settle();
    prepared.ended?.();
  }
}

interface Conversation extends RunState {
  readonly connection: RunnerConnection;
  readonly sessionId: string;
  readonly journal: RunnerJournal;
  readonly money: Money;
}

async function converse(conversation: Conversation): Promise<Ending> {
  const { input, ports, journal, signal, setup } = conversation;
  const { prompt } = input;
  let next = prompt;
  let isFirst = true;
  let asked = false;
  while (true) {
    const mail = isFirst ? ports.takeMessages() : [];
    for (const message of [...(next === undefined ? [] : [next]), ...mail])
      await conversation.channel.push({
        type: "user-added",
        message,
        origin: message === prompt ? "prompt" : "message",
      });
    // Its own conversation has the instructions already where it is continued.
    const instructions = isFirst && setup.runner.session === undefined ? input.system : [];
    const texts = [
      ...instructions,
      ...[...(next === undefined ? [] : [next]), ...mail].map((message: Message) => textOf(message)),
      ...(input.reminder === undefined ? [] : [input.reminder]),
    ];
    isFirst = false;
    const refused = ports.limits?.shortened() ?? conversation.money.left();
    if (refused !== undefined) return ended("partial", refused.reason, journal.text(), refused.error);
    const answer = await promptOnce(conversation, texts.filter((text) => text.trim() !== "").join("\n\n"));
    signal.throwIfAborted();
    const text = journal.text();
    if (answer.stopReason !== "end_turn") return endingOf(answer.stopReason, text, setup.runner.name);
    const messages = ports.takeMessages();
    if (messages.length > 0) {
      next = joined(messages);
      continue;
    }
    if (text.trim() === "" && input.askWhenSilent === true) {
      if (asked)
        return ended(
          "partial",
          "no_result",
          "",
          "The agent ended without any text, even after it was asked for its result.",
        );
      asked = true;
      next = userMessage("You ended without a text. State your result now, in words, without calling tools.");
      continue;
    }
    const more = await ports.beforeEnd?.(text, { signal });
    if (more === undefined) return ended("completed", "end_turn", text);
    next = more;
  }
}

function ended(status: Ending["status"], reason: string, text: string, error?: string): Ending {
  return { status, reason, text, error };
}

function endingOf(stopReason: acp.StopReason, text: string, name: string): Ending {
  switch (stopReason) {
    case "max_tokens":
      return ended("partial", "max_tokens", text, "The answer was cut at the output limit.");
    case "max_turn_requests":
      return ended("partial", "max_turns", text, `${name} reached its own limit of requests for one turn.`);
    case "refusal":
      return ended("failed", "refusal", text, "The model declined to answer.");
    case "cancelled":
      return ended("stopped", "aborted", text, `${name} ended its turn as if it had been stopped.`);
    case "end_turn":
      return ended("completed", "end_turn", text);
    default:
      return ended(
        "failed",
        "error",
        text,
        `${name} ended its turn for an unknown reason (${String(stopReason)}).`,
      );
  }
}

function userMessage(text: string): UserMessage {
  return { role: "user", content: [{ type: "text", text }] };
}

function joined(messages: readonly UserMessage[]): UserMessage {
  const [only] = messages;
  if (messages.length === 1 && only !== undefined) return only;
  const mail = messages.flatMap((message) => message.mail ?? []);
  return { ...userMessage(messages.map(textOf).join("\n\n")), ...(mail.length === 0 ? {} : { mail }) };
}

/** One turn of the program, until it ends by itself or is cancelled; what it took is written with its last words. */
async function promptOnce(conversation: Conversation, text: string): Promise<acp.PromptResponse> {
  const { connection, sessionId, signal, journal, money } = conversation;
  const { agent } = connection;
  const work = agent.request(acp.methods.agent.session.prompt, {
    sessionId,
    prompt: [{ type: "text", text }],
  });
  work.catch(() => undefined);
  try {
    const answer = await abortable(Promise.race([work, connection.gone]), signal);
    checkAnswer(isRecord(answer), conversation.setup.runner.name, acp.methods.agent.session.prompt);
    // What was sent before the answer has been taken by then.
    await new Promise((resolve) => setImmediate(resolve));
    journal.settle();
    await journal.answer({ usage: usageOf(answer), costUsd: money.take() });
    const limit = await money.pay(usageOf(answer));
    if (limit !== undefined) throw limitError(limit);
    return answer;
  } catch (error) {
    if (signal.aborted) {
      connection.look();
      // A program that is gone takes no notice.
      await agent.notify(acp.methods.agent.session.cancel, { sessionId }).catch(() => undefined);
      const soon = new AbortController();
      await Promise.race([work.catch(() => undefined), sleep(cancelMs, soon.signal)]).catch(() => undefined);
      soon.abort();
      await new Promise((resolve) => setImmediate(resolve));
    }
    journal.settle();
    await journal.answer({ usage: noUsage, costUsd: money.take() });
    throw signal.aborted ? error : programError(error, conversation.setup.runner.name);
  }
}

/** Not in the stable part of the protocol yet, and reported by several programs. */
function usageOf(answer: unknown): Usage {
  const usage = isRecord(answer) && isRecord(answer["usage"]) ? answer["usage"] : {};
  const count = (key: string): number => {
    const value = usage[key];
    return typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.trunc(value) : 0;
  };
  return {
    inputTokens: count("inputTokens"),
    outputTokens: count("outputTokens") + count("thoughtTokens"),
    cacheReadTokens: count("cachedReadTokens"),
    cacheWriteTokens: count("cachedWriteTokens"),
  };
}

/** A new session of the program, or the one that is continued, in the mode in which it asks for most. */
async function openSession(connection: RunnerConnection, { setup, signal }: RunState): Promise<string> {
  const { agent, gone, initialized } = connection;
  const { runner, directory, servers } = setup;
  const session = acp.methods.agent.session;
  const params = { cwd: directory, mcpServers: [...servers] };
  const starting = { name: runner.name, what: "open a session", signal };
  const { agentCapabilities = {} } = initialized;
  refuseServers(servers, runner.name, agentCapabilities.mcpCapabilities ?? {});
  const ask = <T>(answer: Promise<T>): Promise<T> => askProgram(Promise.race([answer, gone]), starting);
  if (runner.session === undefined) {
    const opened = await ask<acp.NewSessionResponse>(agent.request(session.new, params));
    const isSession = isRecord(opened) && typeof opened.sessionId === "string" && opened.sessionId !== "";
    checkAnswer(isSession, runner.name, session.new);
    await chooseModes(connection, { sessionId: opened.sessionId, opened, runner, ask });
    return opened.sessionId;
  }
  const sessionId = runner.session;
  const resumes = (agentCapabilities.sessionCapabilities?.resume ?? undefined) !== undefined;
  if (!resumes && agentCapabilities.loadSession !== true)
    throw new RetinueError("runner-cannot-resume", `${runner.name} cannot continue a conversation.`, {
      advice: "Start a new agent, with everything it needs to know in its prompt.",
    });
  const again = { ...params, sessionId };
  const load = (): Promise<Opened | null> => agent.request(session.load, again);
  const resume = (): Promise<Opened | null> =>
    agent.request<Opened | null>(session.resume, again).catch((error: unknown) => {
      // Some offer it and do not have it.
      if (
        error instanceof acp.RequestError &&
        error.code === methodNotFound &&
        agentCapabilities.loadSession === true
      )
        return load();
      throw error;
    });
  const answer = resumes ? resume() : load();
  await chooseModes(connection, { sessionId, opened: (await ask(answer)) ?? {}, runner, ask });
  return sessionId;
}

const methodNotFound = -32601;

type Opened = Partial<Pick<acp.NewSessionResponse, "modes" | "configOptions">>;

async function chooseModes(
  { agent }: RunnerConnection,
  {
    sessionId,
    opened: { modes, configOptions },
    runner,
    ask,
  }: {
    readonly sessionId: string;
    readonly opened: Opened;
    readonly runner: PlannedRunner;
    readonly ask: <T>(answer: Promise<T>) => Promise<T>;
  },
): Promise<void> {
  const { session } = acp.methods.agent;
  const available = modes?.availableModes ?? [];
  const isList = Array.isArray(available) && Array.isArray(configOptions ?? []);
  checkAnswer(isList && available.every(isRecord), runner.name, session.new);
  const modeId = available.find(({ id }) => id === runner.mode)?.id;
  if (modeId !== undefined && modes?.currentModeId !== modeId)
    await ask(agent.request(session.setMode, { sessionId, modeId }));
  if (runner.model === undefined) return;
  const option = (configOptions ?? []).find(({ category, id }) => category === "model" || id === "model");
  const values = option?.type === "select" ? valuesOf(option.options) : [];
  if (option === undefined || !values.includes(runner.model))
    throw new RetinueError(
      "runner-model",
      `${runner.name} has no model ${JSON.stringify(runner.model)} to choose${values.length === 0 ? "" : `; it offers ${values.join(", ")}`}.`,
      { advice: "Write one of its own models under `model`, or leave `model` out." },
    );
  await ask(agent.request(session.setConfigOption, { sessionId, configId: option.id, value: runner.model }));
}

function valuesOf(options: acp.SessionConfigSelect["options"]): readonly string[] {
  return options.flatMap((entry) =>
    "options" in entry ? entry.options.map(({ value }) => value) : [entry.value],
  );
}

function refuseServers(
  servers: readonly acp.McpServer[],
  name: string,
  { http, sse }: { readonly http?: boolean; readonly sse?: boolean },
): void {
  const unable = servers.find(
    (server) =>
      "type" in server &&
      ((server.type === "http" && http !== true) || (server.type === "sse" && sse !== true)),
  );
  if (unable === undefined) return;
  throw new RetinueError(
    "runner-servers",
    `${name} does not support MCP servers over ${"type" in unable ? unable.type : "that way"}, and its definition names ${unable.name}.`,
    { advice: "Leave it out of `mcpServers`, or configure it with a command." },
  );
}

interface Money {
  /** Takes what its session has cost in all. */
  report(totalUsd: number): void;
  /** What was reported since the last asking; undefined where nothing ever was. */
  take(): number | undefined;
  /** Pays what is not paid yet; gives the limit that leaves nothing more. */
  pay(usage: Usage): Promise<LimitReached | undefined>;
  left(): LimitReached | undefined;
}

/** What the program says that it took, which is known only afterwards. */
function createMoney({ setup: { budget, runner }, signal, stop }: RunState): Money {
  let first: number | undefined;
  let total = 0;
  let taken = 0;
  let paid = 0;
  const free = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const need = { model: runner.name, inputTokens: 0, maxOutput: 1, price: free };
  const pay = async (usage: Usage): Promise<LimitReached | undefined> => {
    if (!budget.isLimited) return undefined;
    const usd = total - paid;
    paid = total;
    const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
    const tokens = inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;
    const reserved = await budget.reserve(need, { signal });
    if (reserved.type === "refused") return reserved;
    reserved.settle({ usd, tokens });
    return budget.refusal(need);
  };
  return {
    report(totalUsd) {
      if (!Number.isFinite(totalUsd) || totalUsd < 0) return;
      // A session that is continued has cost something before.
      first ??= runner.session === undefined ? 0 : totalUsd;
      total = Math.max(total, totalUsd - first);
      void pay(noUsage)
        .then((limit) => {
          if (limit !== undefined) stop.abort(limitError(limit));
        })
        .catch(() => undefined);
    },
    take() {
      const since = total - taken;
      taken = total;
      return first === undefined ? undefined : since;
    },
    pay,
    left: () => (budget.isLimited ? budget.refusal(need) : undefined),
  };
}

function turnsReached(turns: number): LimitReached {
  return { reason: "max_turns", error: `The limit of ${turns} turns was reached.` };
}

/** Ends a program that reports nothing for too long; while it waits for us, it need not. */
function watchSilence(name: string, stop: AbortController) {
  let held = 0;
  let timer: NodeJS.Timeout | undefined;
  const sign = (): void => {
    clearTimeout(timer);
    if (held > 0) return;
    timer = setTimeout(() => {
      const minutes = silentMs / 60_000;
      stop.abort(
        new RetinueError("runner-silent", `${name} reported nothing for ${minutes} minutes and was ended.`),
      );
    }, silentMs);
    timer.unref();
  };
  return {
    sign,
    async hold<T>(work: () => Promise<T>): Promise<T> {
      held += 1;
      clearTimeout(timer);
      try {
        return await work();
      } finally {
        held -= 1;
        sign();
      }
    },
    end(): void {
      held = Number.POSITIVE_INFINITY;
      clearTimeout(timer);
    },
  };
}
