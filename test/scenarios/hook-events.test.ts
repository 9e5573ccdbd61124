import { expect, test, vi } from "vitest";
import { type FiredEvent, firedHookEvents } from "../../src/hooks/hook-input.ts";
import { createSampleRuntime } from "../../src/testing/sample-runtime.ts";

/** One session in which everything happens that hooks can react to; a new event needs a step here. */
test("every event that can be fired is seen to fire [HKS-1]", async () => {
  const seen = new Set<string>();
  const call = (name: string, input: object) => ({ calls: [{ name, input }] });
  const steps = [
    call("Read", { file_path: "a.txt" }),
    call("Read", { file_path: "missing.txt" }),
    call("Bash", { command: "touch made" }),
    call("Agent", { subagent_type: "general-purpose", description: "help", prompt: "Help." }),
    "Helped.",
    "Done.",
    "Again.",
    "A summary of what happened.",
  ];
  const sample = await createSampleRuntime(steps, {
    settingSources: ["user", "project", "local"],
    approver: { approve: async () => ({ type: "allow", for: "call" }) },
    hooks: firedHookEvents.map((event: FiredEvent) => ({
      event,
      run: async () => void seen.add(event),
    })),
  });
  try {
    await sample.workspace.write("a.txt", "inside\n");
    const session = await sample.runtime.open();
    await session.prompt("Go.").result;
    await session.prompt("Continue.").result;
    expect(await session.compact().result).toMatchObject({ reason: "compacted" });
    await session[Symbol.asyncDispose]();
  } finally {
    await sample[Symbol.asyncDispose]();
  }
  await vi.waitFor(() => expect([...seen].sort()).toEqual([...firedHookEvents].sort()));
});
