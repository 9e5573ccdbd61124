import { aborted } from "@retinue/testing/becomes.ts";
import { expect, test } from "vitest";
import { logConflict, type RunActivation, thrownPauseMs } from "../store.ts";
import type { AgentTable } from "./agent-table.ts";
import { createLiveRuns, type LiveRuns } from "./create-postgres-engine.ts";

/** What becomes of one run: whether its agent comes to rest or is scheduled again, and after which pause. */
async function fateOf(run: RunActivation, meanwhile: (live: LiveRuns) => void = () => undefined) {
  const fate: string[] = [];
  const agents: Pick<AgentTable, "owns" | "end" | "release"> = {
    owns: async () => true,
    async end() {
      fate.push("rests");
      return "ended";
    },
    release: async (_, delayMs) => void fate.push(`again after ${delayMs}`),
  };
  const live = createLiveRuns({
    worker: "w",
    agents,
    run,
    draining: new AbortController().signal,
    isCertain: () => true,
    onError: () => undefined,
    onEnd: () => undefined,
  });
  const started = live.start({ agent: "a", token: "t", wakes: "1" });
  await Promise.resolve();
  meanwhile(live);
  await started;
  return fate.join();
}

const untilAborted: RunActivation = async ({ signal }) => {
  await aborted(signal);
  throw signal.reason;
};

test.each<[string, RunActivation, string]>([
  ["done", async () => "done", "rests"],
  ["again", async () => "again", "again after 0"],
  ["again after a pause", async () => ({ againAfterMs: 70 }), "again after 70"],
  ["an unknown error", () => Promise.reject(new Error("x")), `again after ${thrownPauseMs}`],
  ["a conflict", () => Promise.reject(logConflict("run/a", 1)), "again after 0"],
])("an agent whose run ends with %s rests only if that is done [CLU-7]", async (_, run, fate) => {
  expect(await fateOf(run)).toBe(fate);
});

test("a run of a worker that was taken for dead is given back, which has no effect if another has it [CLU-7]", async () => {
  expect(await fateOf(untilAborted, (live) => live.abortAll())).toBe("again after 0");
  expect(await fateOf(untilAborted, (live) => live.cancel("a"))).toBe("rests");
});
