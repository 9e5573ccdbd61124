/** So many workers must have died with an agent before it is a suspect; one alone may have any cause. */
export const suspiciousCrashes = 2;
/** One that neither dies nor gets further must not keep the others waiting for ever. */
const maxTrialMs = 120_000;

/**
 * When a worker dies, each agent that it ran may have been the reason. Those that were there twice run one at a time on a worker
 * from then on: the next death shows which of them it is, and the others do not become dead letters with it.
 */
export interface Quarantine {
  /** Undefined while another suspect runs here. `crashes` is how many workers have died with the agent. */
  enter(crashes: number): Trial | undefined;
}

/** A suspect that runs here. The more workers have died with it, the further it has to get before the next one may come. */
export interface Trial extends Disposable {
  passStep(): void;
}

export function createQuarantine(): Quarantine {
  let current: Trial | undefined;
  return {
    enter(crashes) {
      if (current !== undefined) return undefined;
      let left = 2 ** crashes;
      const end = (): void => {
        clearTimeout(timer);
        if (current === trial) current = undefined;
      };
      const timer = setTimeout(end, maxTrialMs).unref();
      const trial: Trial = {
        passStep() {
          left -= 1;
          if (left <= 0) end();
        },
        [Symbol.dispose]: end,
      };
      current = trial;
      return trial;
    },
  };
}
