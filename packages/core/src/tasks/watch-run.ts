import { abortable, type WaitClock } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { textOf } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { endingOfCause, limitError } from "../loop/loop-ports.ts";
import { createTally } from "../loop/tally.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";

/** Without any event: reported after the first time, stopped after the second. */
export interface SilenceLimit {
  readonly reportMs: number;
  readonly stopMs: number;
}

export interface RunWatch {
  readonly clock: WaitClock;
  /** The run's own time; a question to a person holds it. */
  readonly stopwatch: Stopwatch;
  readonly timeMs?: number;
  /** Asked for anew, because a run may be left alone on the way; absent: it may be silent for ever. */
  readonly silence?: () => SilenceLimit | undefined;
  /** When it last did something, by its stopwatch; who has it can show that the run is alive without an event of its own. */
  readonly life?: { lastSign: number };
  /** The time of all agents together, and how much of it there is. */
  readonly tree?: { readonly stopwatch: Stopwatch; readonly timeMs: number };
}

/** What limits the time of the agents of a session. */
export interface AgentClocks {
  readonly clock: WaitClock;
  /** Runs while any agent of the session works. */
  readonly tree: Stopwatch;
  readonly treeTimeMs?: number;
  /** When a silent child that was moved to the background is stopped; 0 never. */
  readonly backgroundStopMs?: number;
}

/** The clocks of one agent, as its plan limits it. Of them only a child is watched for silence: who runs the main agent sees that. */
export function watchOf(
  { limits }: Pick<AgentPlan, "limits">,
  { clock, tree, treeTimeMs }: AgentClocks,
  stopwatch: Stopwatch,
): RunWatch {
  return {
    clock,
    stopwatch,
    timeMs: limits?.timeMs?.value,
    tree: treeTimeMs === undefined ? undefined : { stopwatch: tree, timeMs: treeTimeMs },
  };
}

/** A run that does not end with its signal is left behind after this time. */
const abandonAfterMs = 6000;

/** Passes the events of a run on, shows when it falls silent, and ends it when a clock runs out. */
export async function* watchRun(
  run: (signal: AbortSignal) => AsyncIterable<RunEvent>,
  watch: RunWatch,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const stop = new AbortController();
  const over = new AbortController();
  // Not `AbortSignal.any`: each turn adds some ten listeners, and on a signal of its kind each costs twice as much.
  const either = new AbortController();
  const stopRun = (): void => either.abort(signal.aborted ? signal.reason : stop.signal.reason);
  for (const one of [signal, stop.signal]) one.addEventListener("abort", stopRun, { signal: over.signal });
  if (signal.aborted) stopRun();
  const wakeup = createWakeup();
  const life = watch.life ?? { lastSign: 0 };
  life.lastSign = watch.stopwatch.elapsed();
  const iterator = run(either.signal)[Symbol.asyncIterator]();
  watch.stopwatch.start();
  for (const wait of watchClocks({ watch, stop, life, notify: wakeup.notify, over: over.signal })) {
    wait.catch((error: unknown) => {
      if (!over.signal.aborted) stop.abort(error);
    });
  }
  let isLeft = false;
  try {
    let next = iterator.next();
    while (true) {
      const update = await wakeup.orNext(next);
      if (update.type === "given-up") {
        isLeft = true;
        throw stop.signal.reason;
      }
      if (update.type === "reported") {
        yield update.event;
        continue;
      }
      if (update.step.done === true) return;
      yield update.step.value;
      // What the reader did meanwhile does not count as silence.
      if (watch.silence !== undefined) life.lastSign = watch.stopwatch.elapsed();
      next = iterator.next();
    }
  } finally {
    // With a reason, because Node makes an error with a stack where there is none.
    over.abort("over");
    watch.stopwatch.stop();
    const closing = iterator.return?.();
    closing?.catch(() => undefined);
    if (!isLeft) await closing;
  }
}

type Update =
  | { readonly type: "next"; readonly step: IteratorResult<RunEvent> }
  | { readonly type: "reported"; readonly event: RunEvent }
  | { readonly type: "given-up" };

/** Wakes the one reader. Racing the long wait against each event would keep every one of them in memory. */
function createWakeup() {
  const waiting: Update[] = [];
  let wake: ((update: Update) => void) | undefined;
  return {
    notify(update: Update): void {
      if (wake === undefined) waiting.push(update);
      else wake(update);
    },
    orNext(next: Promise<IteratorResult<RunEvent>>): Promise<Update> {
      const reported = waiting.shift();
      if (reported !== undefined) {
        // It is asked for again after this update; a failure in between must not count as unhandled.
        next.catch(() => undefined);
        return Promise.resolve(reported);
      }
      return new Promise((resolve, reject) => {
        wake = (update) => {
          wake = undefined;
          resolve(update);
        };
        next.then(
          (step) => {
            wake = undefined;
            resolve({ type: "next", step });
          },
          (error: unknown) => {
            wake = undefined;
            reject(error);
          },
        );
      });
    },
  };
}

interface Watching {
  readonly watch: RunWatch;
  readonly stop: AbortController;
  readonly life: { lastSign: number };
  readonly notify: (update: Update) => void;
  readonly over: AbortSignal;
}

function watchClocks(watching: Watching): readonly Promise<void>[] {
  const { watch, over } = watching;
  const { stopwatch, tree, timeMs, silence } = watch;
  const begin = stopwatch.elapsed();
  const ownTime = async (limitMs: number): Promise<void> => {
    await stopwatch.reach(() => begin + limitMs, over);
    await end(watching, timeError(limitMs, "of the agent"));
  };
  const treeTime = async (whole: NonNullable<RunWatch["tree"]>): Promise<void> => {
    await whole.stopwatch.reach(() => whole.timeMs, over);
    await end(watching, timeError(whole.timeMs, "of the whole tree"));
  };
  return [
    ...(timeMs === undefined ? [] : [ownTime(timeMs)]),
    ...(tree === undefined ? [] : [treeTime(tree)]),
    ...(silence === undefined ? [] : [watchSilence(watching, silence)]),
  ];
}

async function watchSilence(watching: Watching, silence: NonNullable<RunWatch["silence"]>): Promise<void> {
  const { watch, life, notify, over } = watching;
  const { stopwatch } = watch;
  const limit = (which: "reportMs" | "stopMs") =>
    life.lastSign + (silence()?.[which] ?? Number.POSITIVE_INFINITY);
  const silent = (): number => Math.round(stopwatch.elapsed() - life.lastSign);
  while (true) {
    await stopwatch.reach(() => limit("reportMs"), over);
    const reported = life.lastSign;
    const reportedAt = stopwatch.elapsed();
    notify({ type: "reported", event: { type: "run-stalled", silentMs: silent(), stops: false } });
    // The person that was notified has some time to do something about it, also where the silence was noticed late.
    const grace = (): number => {
      const { reportMs, stopMs } = silence() ?? { reportMs: 0, stopMs: 0 };
      return reportedAt + stopMs - reportMs;
    };
    await stopwatch.reach(() => (life.lastSign === reported ? Math.max(limit("stopMs"), grace()) : 0), over);
    if (life.lastSign !== reported) continue;
    notify({ type: "reported", event: { type: "run-stalled", silentMs: silent(), stops: true } });
    const seconds = Math.round(silent() / 1000);
    return end(watching, new RetinueError("stalled", `The agent gave no sign of life for ${seconds} s.`));
  }
}

/** Stops the run; one that does not respect it is given up. */
async function end({ watch, stop, notify, over }: Watching, reason: RetinueError): Promise<void> {
  stop.abort(reason);
  await watch.clock.sleep(abandonAfterMs, over);
  notify({ type: "given-up" });
}

function timeError(timeMs: number, whose: string): RetinueError {
  return limitError({
    reason: "max_time",
    error: `The time limit of ${timeMs / 1000} s ${whose} was reached.`,
  });
}

/** Measures the time in which work continues: it is paused before the start, after the stop, and while it is held. */
export interface Stopwatch {
  /** Milliseconds it has run so far. */
  elapsed(): number;
  /** Counted: it runs until as many stops have come. */
  start(): void;
  stop(): void;
  /** Is still until the wait is over, such as one for a person. */
  hold<T>(wait: () => Promise<T>): Promise<T>;
  /** Resolves when it has run as long as the deadline says, which is asked for anew now and then. */
  reach(deadline: () => number, signal: AbortSignal): Promise<void>;
}

/** A deadline may change while it is waited for, so it is looked at again this often. */
const lookAgainMs = 30_000;

/** While it runs, the parent is started too: a parent of several runs whenever one of them does. */
export function createStopwatch(clock: WaitClock, parent?: Pick<Stopwatch, "start" | "stop">): Stopwatch {
  const sleepers = createSleepers();
  let starts = 0;
  let holds = 0;
  let ran = 0;
  let since: number | undefined;

  function settle(): void {
    const runs = starts > 0 && holds === 0;
    if (runs && since === undefined) {
      since = clock.now();
      parent?.start();
      sleepers.wakeAll();
    } else if (!runs && since !== undefined) {
      ran += clock.now() - since;
      since = undefined;
      parent?.stop();
    }
  }

  const elapsed = (): number => ran + (since === undefined ? 0 : clock.now() - since);

  return {
    elapsed,
    start() {
      starts += 1;
      settle();
    },
    stop() {
      starts = Math.max(0, starts - 1);
      settle();
    },
    async hold(wait) {
      holds += 1;
      settle();
      try {
        return await wait();
      } finally {
        holds -= 1;
        settle();
      }
    },
    async reach(deadline, signal) {
      while (true) {
        signal.throwIfAborted();
        const left = deadline() - elapsed();
        if (left <= 0) return;
        if (since === undefined) await sleepers.sleep(signal);
        else await clock.sleep(Math.min(left, lookAgainMs), signal);
      }
    },
  };
}

function createSleepers() {
  const wakers = new Set<() => void>();
  return {
    wakeAll(): void {
      for (const wake of wakers) wake();
      wakers.clear();
    },
    async sleep(signal: AbortSignal): Promise<void> {
      const woken = Promise.withResolvers<void>();
      wakers.add(woken.resolve);
      try {
        await abortable(woken.promise, signal);
      } finally {
        wakers.delete(woken.resolve);
      }
    },
  };
}

/** Adds up a run from outside, for the case that it has to be given up and cannot report its own ending. */
interface EventTally {
  add(event: RunEvent): void;
  /** The ending of a run that was broken off by this, in the same shape as any other. */
  endedBy(cause: unknown): RunEnding;
}

export function tallyEvents(now: () => number): EventTally {
  const tally = createTally(now);
  return {
    add(event) {
      switch (event.type) {
        case "assistant-answered":
          tally.addTurn(event.usage, event.durationMs ?? 0, event.costUsd);
          tally.addText(textOf(event.message));
          break;
        case "answer-lost":
        case "context-compacted":
          tally.addAside(event.usage, 0, event.costUsd);
          break;
        case "model-fell-back": {
          const { from, to, code } = event;
          tally.addFallback({ from, to, code });
          break;
        }
        case "call-finished": {
          const { call, denied } = event;
          tally.addCalls(1, denied === undefined ? [] : [{ call, reason: denied }]);
        }
      }
    },
    endedBy: (cause) => ({ ...endingOfCause(cause, false), text: tally.lastText(), ...tally.result() }),
  };
}
