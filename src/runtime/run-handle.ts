import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import { createFeed } from "../foundation/feed.ts";

/** What a run gives back at its end. */
export interface RunResult<Output = unknown> extends RunEnding {
  readonly sessionId: string;
  readonly output?: Output;
}

/** A run that goes on: await it for the result, iterate it for what happens, stop it. */
export interface RunHandle<Output = unknown> extends PromiseLike<RunResult<Output>>, AsyncIterable<RunEvent> {
  readonly sessionId: string;
  /** Resolves with the result; never rejects for what a model or tool did. */
  readonly result: Promise<RunResult<Output>>;
  /** Ends the run and its tools; the result then says `stopped`. */
  stop(reason?: string): Promise<RunResult<Output>>;
}

export interface RunDriver {
  readonly events: (signal: AbortSignal) => AsyncIterable<RunEvent>;
  /** Empty until the session is found, when a run goes on with an earlier one. */
  readonly sessionId: () => string;
  readonly signal?: AbortSignal;
}

/** Starts driving at once; whoever subscribes in the same tick misses nothing. */
export function startRun<Output>(driver: RunDriver): RunHandle<Output> {
  const controller = new AbortController();
  const feed = createFeed<RunEvent>();
  const signal =
    driver.signal === undefined ? controller.signal : AbortSignal.any([driver.signal, controller.signal]);
  const result = drive<Output>(driver, signal, feed.publish).finally(() => feed.end());
  // The caller may only iterate; a failure then still reaches them through `result`.
  result.catch(() => undefined);
  return {
    get sessionId() {
      return driver.sessionId();
    },
    result,
    // biome-ignore lint/suspicious/noThenProperty: a handle is awaited for its result
    then: (fulfilled, rejected) => result.then(fulfilled, rejected),
    [Symbol.asyncIterator]: () => feed.subscribe(),
    stop(reason = "stopped") {
      controller.abort(new RetinueError(reason, "The run was stopped."));
      return result;
    },
  };
}

async function drive<Output>(
  driver: RunDriver,
  signal: AbortSignal,
  publish: (event: RunEvent) => void,
): Promise<RunResult<Output>> {
  // Whoever iterates the handle subscribes before the first event is made.
  await Promise.resolve();
  let ending: RunEnding | undefined;
  for await (const event of driver.events(signal)) {
    if (event.type === "run-ended") ending = event.ending;
    publish(event);
  }
  if (ending === undefined) throw new RetinueError("run-without-end", "The run ended without saying how.");
  // The output was checked against the caller's own schema before it became part of the ending.
  return { ...ending, sessionId: driver.sessionId() } as RunResult<Output>;
}

/** The ending of a run that was stopped before it had begun. */
export function stoppedEnding(reason: string): RunEnding {
  const totals = { usage: noUsage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0, cost: 0 };
  return { status: "stopped", reason, text: "", denials: [], totals };
}
