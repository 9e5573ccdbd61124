import { sleep } from "../../foundation/abortable.ts";

export interface DispatcherOptions {
  /** Looks for work and starts what there is room for. */
  readonly look: () => Promise<void>;
  /** How long to wait without a call. */
  readonly intervalMs: () => number;
  readonly onError: (error: unknown) => void;
}

/** Looks for work one look at a time: when called, and now and then in case a call was lost. */
export interface Dispatcher {
  call(): void;
  stop(): Promise<void>;
}

export function startDispatcher({ look, intervalMs, onError }: DispatcherOptions): Dispatcher {
  const stopping = new AbortController();
  let called = Promise.withResolvers<void>();
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      called = Promise.withResolvers();
      try {
        await look();
      } catch (error) {
        onError(error);
      }
      const pause = new AbortController();
      const signal = AbortSignal.any([stopping.signal, pause.signal]);
      await Promise.race([called.promise, sleep(intervalMs(), signal).catch(() => undefined)]);
      pause.abort();
    }
  };
  const ended = loop();
  return {
    call: () => called.resolve(),
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
