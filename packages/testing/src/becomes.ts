import { setTimeout as pause } from "node:timers/promises";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Engine, RunActivation } from "@retinue/cluster/store.ts";

export function noting(ran: string[]): RunActivation {
  return async ({ agent }) => {
    ran.push(agent);
    return "done";
  };
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Long enough for a machine with many more processes than cores; only what never holds waits for it. */
const timeoutMs = 50_000;

/** Waits until something holds; fails after a while. */
export async function becomes(holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + timeoutMs;
  for (let delay = 2; !(await holds()); delay = Math.min(delay * 1.3, 40)) {
    if (Date.now() > end) throw new Error(`This did not become true within ${timeoutMs / 1000} s: ${holds}`);
    await pause(delay);
  }
}

export async function rests(engine: Engine, agent: string): Promise<void> {
  await becomes(async () => (await engine.status(agent)).state === "idle");
}

export async function refusalOf(action: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await action();
    return undefined;
  } catch (error) {
    return isRetinueError(error) ? error.code : String(error);
  }
}
