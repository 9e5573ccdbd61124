import { setTimeout as pause } from "node:timers/promises";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Engine, RunActivation } from "@retinue/cluster/store.ts";

export function noting(ran: string[]): RunActivation {
  return async ({ agent }) => {
    ran.push(agent);
    return "done";
  };
}

export function abortion(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

const patienceMs = 15_000;

/** Waits until something holds; fails after a while. */
export async function becomes(holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + patienceMs;
  for (let delay = 2; !(await holds()); delay = Math.min(delay * 1.3, 40)) {
    if (Date.now() > end) throw new Error(`This did not become true within ${patienceMs / 1000} s: ${holds}`);
    await pause(delay);
  }
}

export async function rests(engine: Engine, agent: string): Promise<void> {
  await becomes(async () => (await engine.status(agent)).state === "idle");
}

export async function refusalOf(deed: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await deed();
    return undefined;
  } catch (error) {
    return isRetinueError(error) ? error.code : String(error);
  }
}
