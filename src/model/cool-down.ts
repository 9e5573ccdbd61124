import type { WaitClock } from "../foundation/stopwatch.ts";

export type { WaitClock } from "../foundation/stopwatch.ts";

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

/** Those who waited together set out one after another over this part of the pause, at most so long. */
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
