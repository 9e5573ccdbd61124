import { type FiredEvent, firedHookEvents } from "@retinue/config/hooks/hook-input.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { expect, test, vi } from "vitest";

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
  await fireTeamEvents(seen);
  await vi.waitFor(() => expect([...seen].sort()).toEqual([...firedHookEvents].sort()));
});

/** A lead that puts a task on the board, completes it, and has a teammate that becomes idle. */
async function fireTeamEvents(seen: Set<string>): Promise<void> {
  const isLead = ({ system }: ModelRequest) => !system.join("\n").includes(", a teammate in the team");
  const call = (name: string, input: object) => ({ match: isLead, calls: [{ name, input }] });
  await using sample = await createSampleRuntime(
    [
      call("TaskCreate", { subject: "a", description: "Do a." }),
      call("TaskUpdate", { taskId: "1", status: "completed" }),
      call("Agent", { description: "work", prompt: "Work.", name: "ada" }),
      { match: isLead, text: "Waiting.", times: "any" },
      { text: "Worked.", times: "any" },
    ],
    {
      teams: true,
      hooks: firedHookEvents.map((event: FiredEvent) => ({ event, run: async () => void seen.add(event) })),
    },
  );
  await sample.runtime.run("Begin.").result;
}
