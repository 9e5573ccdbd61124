// @io
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { JsonValue, Store, Subscription } from "../store.ts";

/** A provider that refuses one worker for a while is left alone by all of them. */
export interface SharedCoolDowns extends AsyncDisposable {
  /** Returns when the model may be asked again. */
  wait(provider: string, model: string, signal: AbortSignal): Promise<void>;
  /** Milliseconds until then. */
  left(provider: string, model: string): number;
  /** The provider wants no requests for this long. */
  refused(provider: string, model: string, delayMs: number): void;
}

const topic = "cool-down";
const logName = "cool-downs";

/**
 * Pauses go out as live events, because they must arrive immediately, and into a log, for workers that start later. Times are by
 * the clock of each worker from the moment it is notified of the pause, so clocks need not agree.
 */
export async function openSharedCoolDowns(
  { bus, log }: Store,
  onError: (error: unknown) => void,
): Promise<SharedCoolDowns> {
  const until = new Map<string, number>();
  const pause = (key: string, milliseconds: number): void => {
    until.set(key, Math.max(until.get(key) ?? 0, performance.now() + milliseconds));
  };
  const onEvent = (event: JsonValue): void => {
    if (isRecord(event) && typeof event["key"] === "string" && typeof event["ms"] === "number")
      pause(event["key"], Math.min(event["ms"], maxMs));
  };
  const subscription: Subscription = await bus.subscribe(topic, onEvent);
  for (const { at, record } of await log.read(logName, -recent)) {
    const left = isRecord(record) && typeof record["ms"] === "number" ? at + record["ms"] - Date.now() : 0;
    if (left > 0 && isRecord(record)) onEvent({ ...(record as Record<string, JsonValue>), ms: left });
  }
  return {
    async wait(provider, model, signal) {
      const key = keyOf(provider, model);
      for (let left = leftOf(until, key); left > 0; left = leftOf(until, key)) await sleep(left, signal);
    },
    left: (provider, model) => Math.max(0, leftOf(until, keyOf(provider, model))),
    refused(provider, model, delayMs) {
      const key = keyOf(provider, model);
      // Within a pause that all know of, another refusal of a request sent before it says nothing new.
      if (leftOf(until, key) >= delayMs - 50) return;
      pause(key, delayMs);
      const event = { key, ms: Math.min(delayMs, maxMs) };
      bus.publish(topic, event);
      log.append(logName, [event]).catch(onError);
    },
    async [Symbol.asyncDispose]() {
      subscription.close();
    },
  };
}

const recent = 50;
/** The longest windows of quotas are of a week. */
const maxMs = 8 * 24 * 3_600_000;

function keyOf(provider: string, model: string): string {
  return `${provider}/${model}`;
}

function leftOf(until: ReadonlyMap<string, number>, key: string): number {
  return Math.ceil((until.get(key) ?? 0) - performance.now());
}
