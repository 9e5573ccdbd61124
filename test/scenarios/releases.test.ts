import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEnding } from "@retinue/core/conversation/run-event.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { createManualClock, type ManualClock } from "@retinue/testing/manual-clock.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import type { AgentHandle } from "../../src/index.ts";

interface Case {
  readonly steps: readonly Step[];
  readonly settings?: object;
  readonly hooks?: RuntimeOptions["hooks"];
  /** Done once the child has started its process in the background. */
  readonly meanwhile?: (child: {
    readonly handle: AgentHandle;
    readonly clock: ManualClock;
  }) => Promise<unknown>;
  readonly ending: Partial<RunEnding>;
}

const leaveProcess: Step = {
  text: "I begin.",
  calls: [
    {
      name: "Bash",
      input: { command: "echo $$ > pid && exec sleep 1000", run_in_background: true, description: "sleep" },
    },
  ],
};
/** The command needs a moment to write its number down. */
const seeProcess: Step = {
  calls: [{ name: "Bash", input: { command: "until [ -s pid ]; do sleep 0.01; done; cat pid" } }],
};
const stall: Step = { text: "And then", failure: "stall", after: 1 };
const again: Step = { calls: [{ name: "Glob", input: { pattern: "*" } }] };

const cases: readonly [what: string, Case][] = [
  ["completed", { steps: ["Done."], ending: { status: "completed" } }],
  ["failed", { steps: [{ failure: "unauthorized" }], ending: { status: "failed", reason: "unauthorized" } }],
  [
    "stopped",
    {
      steps: [stall],
      meanwhile: ({ handle }) => handle.stop(),
      ending: { status: "stopped", reason: "stopped-by-program" },
    },
  ],
  [
    "ended by a limit of calls",
    {
      steps: [again, again, "Handed in."],
      settings: { agent: { toolCalls: 3 } },
      ending: { status: "partial", reason: "max_tool_calls" },
    },
  ],
  [
    "ended by its time",
    {
      steps: [stall],
      settings: { agent: { seconds: 60 } },
      meanwhile: ({ clock }) => clock.advance(60_000),
      ending: { status: "partial", reason: "max_time" },
    },
  ],
  [
    "stalled",
    {
      steps: [stall],
      settings: { agent: { silenceSeconds: 60 } },
      meanwhile: ({ clock }) => clock.advance(120_000),
      ending: { status: "stopped", reason: "stalled" },
    },
  ],
  [
    "completed although a hook crashed",
    {
      steps: ["Done."],
      hooks: (["SubagentStart", "SubagentStop", "PostToolUse"] as const).map((event) => ({
        event,
        run: async () => {
          throw new Error(`${event} crashed`);
        },
      })),
      ending: { status: "completed" },
    },
  ],
];

/** Every file below a folder. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
}

describe("[SPN-6] whatever the end of a child, nothing of it is left", () => {
  test.skipIf(process.platform !== "linux").each(cases)(
    "%s",
    async (_what, { steps, settings, hooks, meanwhile, ending }) => {
      const clock = createManualClock();
      const sample = await createSampleRuntime([leaveProcess, seeProcess, ...steps], {
        clock,
        hooks: hooks ?? [],
      });
      onTestFinished(() => sample[Symbol.asyncDispose]());
      await sample.workspace.write(
        "../home/.claude/settings.json",
        JSON.stringify({ limits: settings ?? {} }),
      );
      await using session = await sample.runtime.open({ skipPermissions: true });
      const before = timers();
      const handle = session.spawn("general-purpose", "Work.");
      let answered = 0;
      for await (const event of handle.events) {
        if (event.type === "assistant-answered") answered += 1;
        if (answered === 2 && event.type === "model-streamed") await meanwhile?.({ handle, clock });
      }
      const result = await handle.result;
      expect(result).toMatchObject(ending);
      expect(Object.keys(result)).toEqual(expect.arrayContaining(["status", "reason", "text", "totals"]));

      const pid = Number(readFileSync(sample.workspace.path("pid"), "utf8"));
      expect(isAlive(pid)).toBe(false);
      expect(timers()).toBeLessThanOrEqual(before);
      expect(clock.sleeping()).toBe(0);
      await handle.started;
      const { id } = handle;
      const own = filesBelow(sample.home).filter((file) => file.includes(id));
      expect(own.filter((file) => !/\.(jsonl|meta\.json|output|md|txt)$/.test(file))).toEqual([]);
      expect(
        filesBelow(sample.home).filter((file) => /lock|\.queued$|\.tmp/.test(file) && file.includes(id)),
      ).toEqual([]);
    },
  );

  test("stopped while it waited for a place", async () => {
    const clock = createManualClock();
    await using sample = await createSampleRuntime([stall, "Never."], { clock });
    await sample.workspace.write(
      "../home/.claude/settings.json",
      JSON.stringify({ limits: { agents: 1, overflow: "queue" } }),
    );
    await using session = await sample.runtime.open();
    const first = session.spawn("general-purpose", "Work.");
    await first.started;
    const second = session.spawn("general-purpose", "Work too.");
    await second.started;
    const { id } = second;
    const held = () =>
      filesBelow(sample.home).filter((file) => file.includes(id) && /lock|\.queued$/.test(file));
    expect(held()).not.toEqual([]);
    expect(await second.stop()).toMatchObject({ status: "stopped", reason: "stopped-by-program", text: "" });
    expect(held()).toEqual([]);
    await first.stop();
    expect(sample.requests).toHaveLength(1);
  });
});
