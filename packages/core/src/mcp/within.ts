/** Waits for the promise, but not longer; its failure is ignored here. Leaves no timer behind. */
export async function within(promise: Promise<unknown>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([promise.catch(() => undefined), limit]);
  clearTimeout(timer);
}
