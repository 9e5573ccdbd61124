import { createManualClock } from "@retinue/testing/manual-clock.ts";
import { expect, it } from "vitest";
import type { WorkflowFunctions } from "./create-script-functions.ts";
import { openRealm } from "./open-realm.ts";
import { runWorkflow, type StepRunner } from "./run-workflow.ts";
import { createStepSlots } from "./step-slots.ts";
import { openJournal } from "./workflow-journal.ts";

type Body = (workflow: WorkflowFunctions) => unknown;

/** Runs a function as a workflow, two steps at a time. `steps` is what differs from steps that end immediately with their prompt. */
async function play(
  body: Body,
  {
    steps = {},
    budget = { total: null, spent: () => 0 },
  }: {
    readonly steps?: Partial<StepRunner>;
    readonly budget?: { readonly total: number | null; readonly spent: () => number };
  } = {},
) {
  const clock = createManualClock();
  const keys = new Map<number, string | undefined>();
  const ending = await runWorkflow({
    workflow: { name: "w", body },
    args: undefined,
    openRealm,
    steps: {
      shape: async () => shape,
      newAgentId: (key) => `a${key}`,
      run: async ({ prompt }) => ({ type: "done", value: prompt }),
      recover: async () => ({ type: "lost" }),
      isLost: async () => undefined,
      ...steps,
    },
    journal: await openJournal("wf_12345678-abc", undefined),
    slots: createStepSlots(2, clock),
    find: async () => ({ name: "none", body }),
    budget,
    breaker: 10,
    emit(change) {
      if (change.type === "step" && change.step.key !== undefined)
        keys.set(change.step.index, change.step.key);
    },
    clock,
    epochMs: () => 0,
    signal: new AbortController().signal,
  });
  return { ending, keys };
}

const shape = { hash: "h", parts: {}, agentType: "worker", model: "model" };

it("equal steps are numbered and begun in the order of their calls, whichever is decided first [WFL-3]", async () => {
  const three: Body = ({ agent, parallel }) =>
    parallel([1, 2, 3].map((number) => () => agent("the same", { label: String(number) })));
  const inOrder = await play(three);
  const deciding = [1, 2, 3].map(() => Promise.withResolvers<typeof shape>());
  const begun: string[] = [];
  let asked = 0;
  const played = play(three, {
    steps: {
      shape() {
        asked += 1;
        if (asked === 3) for (const { resolve } of deciding.toReversed()) resolve(shape);
        return deciding[asked - 1]?.promise ?? Promise.resolve(shape);
      },
      async run({ prompt, label }) {
        begun.push(label);
        return { type: "done", value: prompt };
      },
    },
  });
  expect((await played).keys).toEqual(inOrder.keys);
  expect(new Set(inOrder.keys.values()).size).toBe(3);
  expect(begun).toEqual(["1", "2", "3"]);
});

it("output tokens are counted again when a step gets its place: what was called before they were used up does not begin [WFL-4]", async () => {
  let spent = 0;
  const { ending } = await play(
    async ({ agent, parallel }) =>
      await parallel(
        [1, 2, 3, 4, 5, 6].map((number) => async () => {
          try {
            return await agent(`step ${number}`);
          } catch (error) {
            return (error as Error).name;
          }
        }),
      ),
    {
      budget: { total: 10, spent: () => spent },
      steps: {
        async run({ prompt }) {
          spent += 10;
          return { type: "done", value: prompt };
        },
      },
    },
  );
  expect(JSON.parse(ending.result ?? "")).toEqual([
    "step 1",
    ...Array.from({ length: 5 }, () => "WorkflowBudgetError"),
  ]);
});
