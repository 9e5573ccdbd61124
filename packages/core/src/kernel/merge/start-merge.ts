import { createReplayLog } from "@retinue/base/foundation/replay-log.ts";
import type { MergeEvent, MergeQueue } from "../../protocol/merge-step.ts";
import { checkOptions } from "../options/check-options.ts";
import type { MergeHandle, MergeOptions } from "./merge-options.ts";
import type { MergeStart } from "./run-merge.ts";

export function startMerge(
  taker: "session.merge" | "merge",
  { parts, session, end }: MergeStart,
  options: MergeOptions = {},
): MergeHandle {
  checkOptions(taker, options);
  const stopped = new AbortController();
  const signals = [end, stopped.signal, ...(options.signal === undefined ? [] : [options.signal])];
  const log = createReplayLog<MergeEvent>();
  const run = async (): Promise<MergeQueue> => {
    const [{ runMerge }, found] = await Promise.all([import("./run-merge.ts"), parts]);
    return runMerge(
      found,
      { ...options, session },
      { signal: AbortSignal.any(signals), emit: (event) => void log.push(event) },
    );
  };
  const result = run();
  result.then(
    () => log.end(),
    (error: unknown) => log.end({ error }),
  );
  return {
    result,
    events: log,
    stop() {
      stopped.abort();
      return result;
    },
  };
}
