import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** A process rests this long before it gives memory back, and only if it would be worth the pause. */
const restMs = 1_500;
const slackBytes = 32 * 2 ** 20;

/**
 * Work that has ended leaves garbage, which Node keeps as long as nothing needs the memory. A worker that has nothing to do
 * gives it back, so that a machine can hold many that rest; it says how many pieces of work run whenever that changes.
 */
export function createMemoryReturn(): (running: number) => void {
  let timer: NodeJS.Timeout | undefined;
  return (running) => {
    clearTimeout(timer);
    if (running === 0) timer = setTimeout(returnMemory, restMs).unref();
  };
}

/** Gives back now what is worth a pause of some hundredths of a second. */
export function returnMemory(): void {
  const { total_heap_size: total, used_heap_size: used, malloced_memory: other } = getHeapStatistics();
  if (total + other - used < slackBytes && used < 2 * slackBytes) return;
  setFlagsFromString("--expose-gc");
  const collectGarbage: (options: object) => void = runInNewContext("gc");
  collectGarbage({ type: "major", execution: "sync", flavor: "last-resort" });
}
