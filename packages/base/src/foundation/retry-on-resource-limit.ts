import { sleep } from "./abortable.ts";

/** With these the system says that it has too little of something at the moment: descriptors, processes, memory. */
const resourceLimitCodes: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE", "EAGAIN", "ENOMEM"]);

/** Also where the system's error was wrapped in another message. */
export function isResourceLimit(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && resourceLimitCodes.has(error.code)) || isResourceLimit(error.cause);
}

/** About a second in all: others give back what they hold, or there is too little for good. */
const pausesMs = [10, 30, 90, 270, 600];

/** Tries again, briefly, while the system is missing descriptors, processes or memory; then its error is the caller's. */
export async function retryOnResourceLimit<Result>(
  work: () => Result | Promise<Result>,
  { signal = new AbortController().signal }: { readonly signal?: AbortSignal } = {},
): Promise<Result> {
  for (const pause of pausesMs) {
    try {
      return await work();
    } catch (error) {
      if (!isResourceLimit(error)) throw error;
      await sleep(pause, signal);
    }
  }
  return work();
}
