import type { ModelEvent } from "@retinue/core/conversation/message.ts";
import type { Model } from "../../../../../src/index.ts";

type Delta = Extract<ModelEvent, { type: "text-delta" | "thinking-delta" | "input-delta" }>;

/**
 * The same model, read at a pace that suits a person: once pieces of text flow, the next ones are asked for after a pause,
 * and what came together is one piece. Every piece wakes all layers between a model and a screen, which costs more than
 * the text itself. The first pieces after a silence, and everything that is no piece of text, are passed on immediately.
 */
export function gatherDeltas(model: Model, pauseMs: number): Model {
  return {
    get facts() {
      return model.facts;
    },
    stream: (request, options) => gathered(model.stream(request, options), pauseMs),
  };
}

async function* gathered(source: AsyncIterable<ModelEvent>, pauseMs: number): AsyncGenerator<ModelEvent> {
  const basket = createDeltaBuffer();
  const iterator = source[Symbol.asyncIterator]();
  const reading = fill(basket, iterator, pauseMs);
  // It is awaited below; until then its failure has no handler.
  reading.catch(() => undefined);
  try {
    for (let events = await basket.take(); events !== undefined; events = await basket.take()) yield* events;
    await reading;
  } finally {
    basket.close();
    await iterator.return?.();
  }
}

/** An event that took longer than this was not there yet when it was asked for. */
const thereMs = 1;

async function fill(
  basket: DeltaBuffer,
  iterator: AsyncIterator<ModelEvent>,
  pauseMs: number,
): Promise<void> {
  let lastDelta = Number.NEGATIVE_INFINITY;
  try {
    while (!basket.isClosed) {
      const asked = performance.now();
      const step = await iterator.next();
      if (step.done === true) return;
      basket.put(step.value);
      if (!isDelta(step.value)) continue;
      const now = performance.now();
      const flows = now - asked > thereMs && now - lastDelta < pauseMs;
      lastDelta = now;
      if (flows) await basket.pause(pauseMs);
    }
  } finally {
    basket.end();
  }
}

interface DeltaBuffer {
  readonly isClosed: boolean;
  put(event: ModelEvent): void;
  /** Nothing more is put in. */
  end(): void;
  /** Nothing more is taken out. */
  close(): void;
  /** Waits so long, or until it is closed. */
  pause(milliseconds: number): Promise<void>;
  /** What came together; undefined after the end. */
  take(): Promise<readonly ModelEvent[] | undefined>;
}

function createDeltaBuffer(): DeltaBuffer {
  let events: ModelEvent[] = [];
  let isEnded = false;
  let isClosed = false;
  let isDue = false;
  let ringing: NodeJS.Immediate | undefined;
  let wake: (() => void) | undefined;
  let endPause: (() => void) | undefined;
  const notify = (): void => {
    clearImmediate(ringing);
    ringing = undefined;
    isDue = true;
    wake?.();
  };
  return {
    get isClosed() {
      return isClosed;
    },
    put(event) {
      const joined = joinDeltas(events.at(-1), event);
      if (joined === undefined) events.push(event);
      else events[events.length - 1] = joined;
      // Pieces that are there already come before this.
      if (isDelta(event)) ringing ??= setImmediate(notify);
      else notify();
    },
    end() {
      isEnded = true;
      notify();
    },
    close() {
      isClosed = true;
      endPause?.();
    },
    pause: (milliseconds) =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, milliseconds);
        endPause = () => {
          clearTimeout(timer);
          resolve();
        };
      }),
    async take() {
      if (!isDue) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = undefined;
      }
      const taken = events;
      events = [];
      isDue = isEnded;
      return taken.length === 0 && isEnded ? undefined : taken;
    },
  };
}

function isDelta(event: ModelEvent): event is Delta {
  return event.type === "text-delta" || event.type === "thinking-delta" || event.type === "input-delta";
}

function joinDeltas(last: ModelEvent | undefined, next: ModelEvent): Delta | undefined {
  if (last === undefined || !isDelta(last) || !isDelta(next) || last.index !== next.index) return undefined;
  if (last.type === "input-delta")
    return next.type === "input-delta" ? { ...last, json: last.json + next.json } : undefined;
  return next.type === last.type ? { ...last, text: last.text + next.text } : undefined;
}
