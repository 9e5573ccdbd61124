import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { classifyFailure } from "./classify-failure.ts";

export interface WorkerHealthOptions {
  /** Finds out what is wrong with this machine; undefined where it can run agents. */
  readonly probe: (error?: unknown) => Promise<string | undefined>;
  /** Called when the worker puts itself aside and when it returns. */
  readonly report: (text: string) => void;
}

/**
 * Whether this worker can run agents. One whose machine is sick puts itself aside: it takes nothing, looks at its machine again and again,
 * and returns when that is well. One at which agents fail one after another, without a reason that a look would find, pauses.
 */
export interface WorkerHealth extends Disposable {
  /** Why it takes nothing; undefined while it does. */
  readonly ailment: string | undefined;
  /** Aborted when this machine is found sick: what runs here is handed over at the end of its turn. Another one once it is well. */
  readonly sickness: AbortSignal;
  /** Finds out whether an error was this machine's. */
  examine(error: unknown, agent: string): Promise<"host" | "unknown">;
  /** An agent got to the end of its activation here. */
  worked(): void;
  /** Looks at the machine now. */
  check(): Promise<void>;
}

const firstPauseMs = 500;
const maxPauseMs = 30_000;
/** A worker whose machine looks well may not stay away for long: what fails may be the agents. */
const maxSuspicionMs = 4_000;
/** So many different agents must fail in a row before the worker suspects itself. */
const suspiciousStreak = 3;

export function createWorkerHealth({ probe, report }: WorkerHealthOptions): WorkerHealth {
  let ailment: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let pauseMs = firstPauseMs;
  const streak = new Set<string>();
  let sickness = new AbortController();

  const look = async (error?: unknown): Promise<string | undefined> =>
    probe(error).catch((failure: unknown) => messageOf(failure));
  const putAside = (reason: string, maxMs: number): void => {
    if (ailment === undefined) report(`this worker takes no agents for now: ${reason}`);
    ailment = reason;
    clearTimeout(timer);
    timer = setTimeout(() => void lookAgain(maxMs), pauseMs).unref();
    pauseMs = Math.min(pauseMs * 2, maxMs);
  };
  const fallSick = (found: string): void => {
    putAside(found, maxPauseMs);
    sickness.abort(new RetinueError("draining", found));
  };
  const lookAgain = async (maxMs: number): Promise<void> => {
    const found = await look();
    if (found !== undefined) {
      fallSick(found);
      return;
    }
    ailment = undefined;
    if (sickness.signal.aborted) sickness = new AbortController();
    report("this worker takes agents again");
    if (maxMs === maxPauseMs) pauseMs = firstPauseMs;
  };
  return {
    get ailment() {
      return ailment;
    },
    get sickness() {
      return sickness.signal;
    },
    async examine(error, agent) {
      const found = await look(error);
      if (found !== undefined) {
        fallSick(found);
        return "host";
      }
      streak.add(agent);
      if (streak.size >= suspiciousStreak && ailment === undefined) {
        const seen = classifyFailure(error) === "host" ? " (an error of this machine)" : "";
        putAside(
          `${streak.size} agents failed here one after another, the last with: ${messageOf(error)}${seen}`,
          maxSuspicionMs,
        );
      }
      return "unknown";
    },
    worked() {
      streak.clear();
      if (ailment === undefined) pauseMs = firstPauseMs;
    },
    async check() {
      const found = await look();
      if (found !== undefined) fallSick(found);
    },
    [Symbol.dispose]() {
      clearTimeout(timer);
    },
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
