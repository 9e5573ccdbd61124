import { randomUUID } from "node:crypto";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import { createReplayLog } from "../foundation/replay-log.ts";
import { RetinueError } from "../foundation/retinue-error.ts";

/** What a run returns at its end. */
export interface RunResult<Output = unknown> extends RunEnding {
  readonly sessionId: string;
  /** The checked value, where `output` asked for one. */
  readonly output?: Output;
}

/**
 * A run in progress. It is not a promise, so it can be returned from an async function: await `result`, iterate
 * `events` or `textStream`, and `stop()` it.
 */
export interface RunHandle<Output = unknown, Result = RunResult<Output>> {
  /** Identifies this run; for a child agent, its agent id. */
  readonly id: string;
  /** Empty until the session is found, where the run resumes an earlier one. */
  readonly sessionId: string;
  /**
   * Resolves with the result. What a model or tool does wrong is a result, too; only a mistake in the call, such as an
   * unknown agent, rejects. A rejection that is never awaited is not reported as unhandled.
   */
  readonly result: Promise<Result>;
  /** Everything that happens, from the start however late you iterate, as often as you like. Throws what `result` rejects with. */
  readonly events: AsyncIterable<RunEvent>;
  /** The text of the answers as the model writes it, replayed from the start as well. */
  readonly textStream: AsyncIterable<string>;
  /** Ends the run and its tools; the result then has the status `stopped`. */
  stop(reason?: string): Promise<Result>;
}

export interface RunDriver {
  readonly events: (signal: AbortSignal) => AsyncIterable<RunEvent>;
  readonly sessionId: () => string;
  readonly signal?: AbortSignal;
}

/** Starts driving immediately, whether or not the events are read. */
export function startRun<Output>(driver: RunDriver): RunHandle<Output> {
  const controller = new AbortController();
  const log = createReplayLog<RunEvent>();
  const signal =
    driver.signal === undefined ? controller.signal : AbortSignal.any([driver.signal, controller.signal]);
  const result = drive<Output>(driver, signal, log.push);
  // Also keeps a rejection that is not awaited from being unhandled.
  result.then(
    () => log.end(),
    (error: unknown) => log.end({ error }),
  );
  return {
    id: randomUUID(),
    get sessionId() {
      return driver.sessionId();
    },
    result,
    events: log,
    textStream: textStreamOf(log),
    stop(reason = "stopped") {
      controller.abort(new RetinueError(reason, "The run was stopped."));
      return result;
    },
  };
}

/** The text that models write, piece by piece, without what surrounds it. */
export function textStreamOf(events: AsyncIterable<RunEvent>): AsyncIterable<string> {
  return {
    async *[Symbol.asyncIterator]() {
      for await (const event of events) {
        if (event.type === "model-streamed" && event.event.type === "text-delta") yield event.event.text;
      }
    },
  };
}

async function drive<Output>(
  driver: RunDriver,
  signal: AbortSignal,
  publish: (event: RunEvent) => void,
): Promise<RunResult<Output>> {
  // The caller has the handle before the first event.
  await Promise.resolve();
  let ending: RunEnding | undefined;
  for await (const event of driver.events(signal)) {
    if (event.type === "run-ended") ending = event.ending;
    publish(event);
  }
  if (ending === undefined) throw new RetinueError("run-without-end", "The run ended without an ending.");
  // The output was checked against the caller's own schema before it became part of the ending.
  return { ...ending, sessionId: driver.sessionId() } as RunResult<Output>;
}

/** The ending of a run that was stopped before it had begun. */
export function stoppedEnding(reason: string): RunEnding {
  const totals = { usage: noUsage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0, cost: 0 };
  return { status: "stopped", reason, text: "", denials: [], totals };
}
