import { readdirSync, readFileSync } from "node:fs";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { defineTool, type Model } from "../../src/index.ts";

// What hangs, hangs for ever; ending it takes seconds, and on a busy machine a few more.
const limitMs = 20_000;
const forever = () => new Promise<never>(() => undefined);

/** Known by the length of its sleep, which nothing else on the machine uses, no other run of these tests either. */
const marks = {
  tool: `301.${process.pid}`,
  stopHook: `302.${process.pid}`,
  startHook: `303.${process.pid}`,
};
const sleeping = (mark: string) => `trap '' TERM INT HUP; sleep ${mark} & wait; sleep ${mark}`;

function processesWith(mark: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return line.includes(`sleep ${mark}`) ? [`${pid} ${line}`] : [];
      } catch {
        return [];
      }
    });
}

const hangingModel: Model = {
  facts: {
    id: "hanging",
    provider: "none",
    contextWindow: 100_000,
    maxOutputTokens: 1000,
    supportsServerTools: false,
  },
  stream: () => ({ [Symbol.asyncIterator]: () => ({ next: forever, return: forever }) }),
};

const callOf = (name: string, input: object = {}): Step => ({ calls: [{ name, input }] });
const hook = (event: string, command: string): RuntimeOptions => ({
  settings: JSON.stringify({ hooks: { [event]: [{ hooks: [{ type: "command", command }] }] } }),
});
const deaf = defineTool<unknown>({
  name: "deaf",
  description: "Never ends.",
  effect: "read",
  call: forever,
});

interface Case {
  readonly steps: readonly Step[];
  readonly options: RuntimeOptions;
  /** The event or call after which the stop comes. */
  readonly until: (what: string) => boolean;
  readonly mark?: string;
}

const anyCall = (what: string) => what.startsWith("call ");
const firstTurn = (what: string) => what === "turn-started";

const cases: readonly [what: string, Case][] = [
  [
    "a model that hangs and ignores its signal",
    { steps: [], options: { model: hangingModel }, until: firstTurn },
  ],
  ["a tool that ignores its signal", { steps: [callOf("deaf")], options: { tools: [deaf] }, until: anyCall }],
  [
    "a hook in code that hangs",
    {
      steps: [callOf("Glob", { pattern: "*" })],
      options: { hooks: [{ event: "PreToolUse", run: forever }] },
      until: (what) => what === "assistant-answered",
    },
  ],
  [
    "a command hook that ignores signals, at the start",
    {
      steps: [],
      options: hook("SubagentStart", sleeping(marks.startHook)),
      until: (what) => what === `process ${marks.startHook}`,
      mark: marks.startHook,
    },
  ],
  [
    "a command hook that ignores signals, at the end",
    {
      steps: [{ text: "Half", failure: "stall", after: 1 }],
      options: hook("SubagentStop", sleeping(marks.stopHook)),
      until: (what) => what === "model-streamed",
      mark: marks.stopHook,
    },
  ],
  [
    "a person who never answers",
    {
      steps: [callOf("Bash", { command: "touch made" })],
      options: { approver: { approve: forever } },
      until: (what) => what === "assistant-answered",
    },
  ],
  [
    "a process that ignores SIGTERM",
    {
      steps: [callOf("Bash", { command: sleeping(marks.tool) })],
      options: { canUseTool: async () => ({ behavior: "allow" }) },
      until: (what) => what === `process ${marks.tool}`,
      mark: marks.tool,
    },
  ],
];

describe.skipIf(process.platform !== "linux")(
  "[TSK-2, HKS-8, SPN-6] a stop always works, within five seconds, and leaves no process behind",
  () => {
    test.concurrent.each(cases)(
      "with %s",
      async (_what, { steps, options, until, mark }) => {
        const stops: string[] = [];
        await using sample = await createSampleRuntime(steps, {
          ...options,
          hooks: [
            ...(Array.isArray(options.hooks) ? options.hooks : []),
            { event: "SubagentStop", run: async (input) => void stops.push(String(input["agent_id"])) },
          ],
        });
        const handle = sample.runtime.spawn("general-purpose", "Work.");
        await handle.started;
        const { id } = handle;
        await reached(handle.events, until, mark);
        const result = await handle.stop();
        expect(result).toMatchObject({ status: "stopped", reason: "stopped-by-program" });
        expect(stops).toEqual([id]);
        await sample.runtime[Symbol.asyncDispose]();
        if (mark !== undefined) expect(processesWith(mark)).toEqual([]);
      },
      limitMs,
    );
  },
);

/** Waits until the child has come to where it hangs. */
async function reached(
  events: AsyncIterable<{ readonly type: string }>,
  until: (what: string) => boolean,
  mark: string | undefined,
): Promise<void> {
  if (mark !== undefined && until(`process ${mark}`)) {
    while (processesWith(mark).length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    return;
  }
  for await (const event of events)
    if (until(event.type) || (event.type === "call-started" && until("call "))) return;
}
