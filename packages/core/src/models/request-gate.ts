import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { abortable } from "@retinue/base/foundation/abortable.ts";

/** The right to ask the provider once; given back when the answer is whole or has failed. */
export interface GatePass {
  /** Further calls do nothing. */
  leave(outcome: "answered" | "refused" | "failed"): void;
}

/** How many requests one provider gets at the same time: as many as are wanted, until it refuses some. */
export interface RequestGate {
  enter(signal: AbortSignal): Promise<GatePass>;
  /** Enters where no caller has to wait; otherwise undefined, and nothing has happened. */
  tryEnter(): GatePass | undefined;
  /** Requests at the same time; infinite while the provider has refused nothing. */
  limit(): number;
}

export interface RequestGates {
  of(provider: string): RequestGate;
}

/** Keeps one gate for each provider, for all agents of a process. */
export function createRequestGates(): RequestGates {
  const gates = new Map<string, RequestGate>();
  return {
    of(provider) {
      let gate = gates.get(provider);
      if (gate === undefined) {
        gate = createRequestGate();
        gates.set(provider, gate);
      }
      return gate;
    },
  };
}

/** A provider that took so many concurrent requests without refusing is not held back any longer. */
const openAgainAt = 64;

/**
 * A refusal halves the number of concurrent requests, each full round of answers raises it by one. Requests that were
 * under way when the number was halved belong to the same burst, and their refusals do not halve it again.
 */
function createAdaptiveLimit() {
  let limit = Number.POSITIVE_INFINITY;
  let issued = 0;
  let halvedAt = 0;
  let answeredSince = 0;
  return {
    current: () => limit,
    /** The number of a request that is about to be sent. */
    issue(): number {
      issued += 1;
      return issued;
    },
    learn(outcome: "answered" | "refused" | "failed", number: number, concurrency: number): void {
      if (outcome === "refused" && number > halvedAt) {
        halvedAt = issued;
        answeredSince = 0;
        limit = Math.max(1, Math.floor(Math.min(limit, concurrency) / 2));
      }
      if (outcome !== "answered" || limit === Number.POSITIVE_INFINITY) return;
      answeredSince += 1;
      if (answeredSince < limit) return;
      answeredSince = 0;
      limit = limit + 1 >= openAgainAt ? Number.POSITIVE_INFINITY : limit + 1;
    },
  };
}

export function createRequestGate(): RequestGate {
  const waiting: PromiseWithResolvers<void>[] = [];
  const limit = createAdaptiveLimit();
  let underWay = 0;

  function authorizeWaiting(): void {
    while (underWay < limit.current()) {
      const first = waiting.shift();
      if (first === undefined) return;
      underWay += 1;
      first.resolve();
    }
  }

  async function waitForPlace(signal: AbortSignal): Promise<void> {
    const place = Promise.withResolvers<void>();
    waiting.push(place);
    try {
      await abortable(place.promise, signal);
    } catch (error) {
      const at = waiting.indexOf(place);
      if (at !== -1) waiting.splice(at, 1);
      else {
        underWay -= 1;
        authorizeWaiting();
      }
      throw error;
    }
  }

  /** The pass of one that has its place. */
  function issuePass(): GatePass {
    const number = limit.issue();
    let isInside = true;
    return {
      leave(outcome) {
        if (!isInside) return;
        isInside = false;
        const concurrency = underWay;
        underWay -= 1;
        limit.learn(outcome, number, concurrency);
        authorizeWaiting();
      },
    };
  }

  function tryEnter(): GatePass | undefined {
    if (underWay >= limit.current() || waiting.length > 0) return undefined;
    underWay += 1;
    return issuePass();
  }

  return {
    limit: limit.current,
    tryEnter,
    async enter(signal) {
      signal.throwIfAborted();
      const pass = tryEnter();
      if (pass !== undefined) return pass;
      await waitForPlace(signal);
      return issuePass();
    },
  };
}

/** The pause that all callers of one model of one provider share. */
export interface CoolDown {
  /** Returns when the model may be asked again. */
  wait(signal: AbortSignal): Promise<void>;
  /** When the pause is over, by the clock; in the past where there is none. */
  until(): number;
  /**
   * The provider refused a request and wants no others for this long. Nothing shortens it: during the pause only answers to
   * requests arrive that were sent before it, and those say nothing about the next one.
   */
  refused(delayMs: number): void;
}

export interface CoolDowns {
  of(provider: string, model: string): CoolDown;
}

/** Keeps one cool-down for each model of each provider, for all agents of a process. */
export function createCoolDowns(clock: WaitClock, random: () => number): CoolDowns {
  const known = new Map<string, CoolDown>();
  return {
    of(provider, model) {
      const key = JSON.stringify([provider, model]);
      let coolDown = known.get(key);
      if (coolDown === undefined) {
        coolDown = createCoolDown(clock, random);
        known.set(key, coolDown);
      }
      return coolDown;
    },
  };
}

/** Requests that waited together start one after another over this part of the pause, at most so long. */
const spread = { share: 0.25, atMostMs: 2000 };

function createCoolDown(clock: WaitClock, random: () => number): CoolDown {
  let until = 0;
  return {
    async wait(signal) {
      let now = clock.now();
      const pause = until - now;
      if (pause <= 0) return;
      // Another refusal may have made it longer meanwhile.
      for (let left = pause; left > 0; left = until - now) {
        await clock.sleep(left, signal);
        now = Math.max(now + left, clock.now());
      }
      await clock.sleep(random() * Math.min(pause * spread.share, spread.atMostMs), signal);
    },
    until: () => until,
    refused(delayMs) {
      until = Math.max(until, clock.now() + delayMs);
    },
  };
}
