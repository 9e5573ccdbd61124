import { existsSync, readFileSync } from "node:fs";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";

const stall: Step = { text: "Half", failure: "stall", after: 1 };
const glob: Step = { text: "I look.", calls: [{ name: "Glob", input: { pattern: "*" } }] };

function hearing(answer: (event: string, count: number) => object) {
  const received: string[] = [];
  const hooks: RuntimeOptions["hooks"] = (["SubagentStart", "SubagentStop"] as const).map((event) => ({
    event,
    run: async () => {
      received.push(event);
      return answer(event, received.filter((name) => name === event).length);
    },
  }));
  return { received, hooks };
}

describe("[HKS-8] the hooks around a child", () => {
  test("a stop hook sends it on with a reason, and is notified of its end again", async () => {
    const { received, hooks } = hearing((event, count) =>
      event === "SubagentStop" && count === 1 ? { decision: "block", reason: "name the files" } : {},
    );
    await using sample = await createSampleRuntime(["Found.", "Found in a.txt."], { hooks });
    expect(await sample.runtime.spawn("Explore", "Look.").result).toMatchObject({ text: "Found in a.txt." });
    expect(JSON.stringify(sample.requests[1]?.messages.at(-1))).toContain("name the files");
    expect(received).toEqual(["SubagentStart", "SubagentStop", "SubagentStop"]);
  });

  test.each<[string, readonly Step[]]>([
    ["its model fails", [{ failure: "unauthorized" }]],
    ["it comes to a limit", [glob, "What I have."]],
  ])("its end is reported once where %s", async (_title, steps) => {
    const { received, hooks } = hearing(() => ({}));
    await using sample = await createSampleRuntime(steps, { hooks });
    expect((await sample.runtime.spawn("Explore", "Look.", { maxTurns: 1 }).result).status).not.toBe(
      "completed",
    );
    expect(received).toEqual(["SubagentStart", "SubagentStop"]);
  });
});

test("[HKS-8] each start has one stop, at whatever moment the child is stopped", async () => {
  const received = new Map<string, string[]>();
  const hooks: RuntimeOptions["hooks"] = (["SubagentStart", "SubagentStop"] as const).map((event) => ({
    event,
    run: async (input) => {
      const id = String(input["agent_id"]);
      received.set(id, [...(received.get(id) ?? []), event]);
      await new Promise((resolve) => setImmediate(resolve));
    },
  }));
  await using sample = await createSampleRuntime(
    Array.from({ length: 40 }, () => "Done."),
    { hooks },
  );
  await using session = await sample.runtime.open();
  const agent = session.loopTools().find(({ name }) => name === "Agent");
  for (let ticks = 0; ticks < 40; ticks += 1) {
    await agent?.call({ description: "look", prompt: "Look.", run_in_background: true });
    const id = session.tasks.list().at(-1)?.id ?? "";
    for (let tick = 0; tick < ticks; tick += 1) await new Promise((resolve) => setImmediate(resolve));
    await session.tasks.stop(id, "user");
  }
  const odd = [...received.values()].filter((events) => events.join() !== "SubagentStart,SubagentStop");
  expect(odd).toEqual([]);
  expect(received.size).toBeGreaterThan(5);
});

test("[BGR-1] a start in the background gives the id and a file that grows while the child works", async () => {
  await using sample = await createSampleRuntime([glob, stall]);
  await using session = await sample.runtime.open();
  const agent = session.loopTools().find(({ name }) => name === "Agent");
  const watching = session.tasks.watch();
  const started = await agent?.call({ description: "look", prompt: "Look.", run_in_background: true });
  const { outputFile, agentId } = started?.data as { outputFile: string; agentId: string };
  expect(session.tasks.get(agentId)?.status).toBe("running");
  for await (const { event } of watching)
    if (event.type === "model-streamed" && existsSync(outputFile)) break;
  const before = readFileSync(outputFile, "utf8");
  expect(before).toContain("I look.");
  await session.tasks.stop(agentId, "user");
  const after = readFileSync(outputFile, "utf8");
  expect(after.startsWith(before)).toBe(true);
  expect(after).toContain("[stopped: stopped-by-user]");
});

test("[TSK-2, TSK-3] an unknown child is answered with the known ones; stopping an ended one is fine, and it can be resumed", async () => {
  await using sample = await createSampleRuntime([stall, "All of it."]);
  await using session = await sample.runtime.open();
  const [agent, output, stop] = ["Agent", "TaskOutput", "TaskStop"].map((name) =>
    session.loopTools().find((tool) => tool.name === name),
  );
  await agent?.call({ description: "look", prompt: "Look.", run_in_background: true });
  const id = session.tasks.list()[0]?.id ?? "";
  for (const tool of [output, stop]) {
    const unknown = await tool?.call({ task_id: "nobody" });
    expect(unknown).toMatchObject({ isError: true });
    expect(unknown?.text).toContain(id);
  }
  expect(await stop?.call({ task_id: id })).toMatchObject({ isError: false });
  expect(await stop?.call({ task_id: id })).toMatchObject({ isError: false });
  expect(session.tasks.get(id)).toMatchObject({ status: "stopped", ending: { reason: "stopped-by-parent" } });
  const again = await agent?.call({ description: "look", prompt: "Continue.", resume: id });
  expect(again?.text).toContain("All of it.");
  expect(JSON.stringify(sample.requests.at(-1)?.messages[0])).toContain("Look.");
});
