import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { activateAgent } from "./activate-agent.ts";
import type { AgentProgram } from "./agent-program.ts";
import { agentLog, readAgentState, toJson } from "./agent-records.ts";
import { openFileStore } from "./files/open-file-store.ts";
import { createQuarantine } from "./quarantine.ts";
import type { ActivationOutcome } from "./store.ts";

test("agents whose workers have died twice run one at a time, so that one that kills its worker takes no other with it [CLU-3]", async () => {
  const folder = await mkdtemp(join(tmpdir(), "quarantine-"));
  const store = await openFileStore(folder);
  onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  });
  const quarantine = createQuarantine();
  const gate = Promise.withResolvers<void>();
  const active = new Set<string>();
  const program: AgentProgram = async (context) => {
    active.add(context.agent);
    if (context.agent === "long") await gate.promise;
    for (let step = 0; step < 4; step += 1) await context.call("step", step, async () => step);
    if (context.agent === "long") await new Promise(() => undefined);
    return { type: "ended", ending: { status: "completed", result: "done" } };
  };
  const run = (agent: string): Promise<ActivationOutcome> =>
    activateAgent(
      store,
      {
        agent,
        worker: "now",
        signal: new AbortController().signal,
        draining: new AbortController().signal,
        confirm: async () => undefined,
      },
      {
        program,
        version: "1",
        has: [],
        health: {
          examine: async () => "unknown",
          worked: () => undefined,
          sickness: new AbortController().signal,
        },
        quarantine,
      },
    );
  const killed = ["one", "two"].map((worker) => toJson({ type: "claimed", worker, version: "1" }));
  for (const agent of ["long", "other", "fresh"]) {
    const planned = toJson({ type: "planned", plan: {}, needs: [], tree: agent });
    await store.log.append(agentLog(agent), [planned, ...(agent === "fresh" ? killed.slice(1) : killed)]);
  }
  // The second death is written down, and the agent waits.
  for (const agent of ["long", "other"])
    expect(await run(agent)).toEqual({ againAfterMs: expect.any(Number) });
  void run("long");
  await expect.poll(() => active.has("long")).toBe(true);
  // Neither claimed nor counted.
  expect(await run("other")).toEqual({ againAfterMs: expect.any(Number) });
  expect(active.has("other")).toBe(false);
  expect(readAgentState(await store.log.read(agentLog("other"))).attempts).toMatchObject({
    failed: 2,
    crashes: 2,
    open: undefined,
  });
  expect(await run("fresh")).toBe("done");
  // Four steps further the first one is trusted again, although it has not ended.
  gate.resolve();
  await expect.poll(() => run("other")).toBe("done");
  expect(readAgentState(await store.log.read(agentLog("other"))).ending?.result).toBe("done");
});
