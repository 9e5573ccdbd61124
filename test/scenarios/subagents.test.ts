import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type RunEvent, spawnSteps } from "@retinue/core/conversation/run-event.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";

/** Steps of the main agent match its own prompt; a child's match the words of its task. */
const main = (step: Exclude<Step, string | ((...args: never[]) => unknown)>): Step => ({
  match: "You are an engineer at a terminal",
  ...step,
});
const child = (task: string, step: Exclude<Step, string | ((...args: never[]) => unknown)>): Step => ({
  match: (request: { readonly messages: readonly unknown[] }) =>
    JSON.stringify(request.messages[0]).includes(task),
  ...step,
});
const spawnCall = (prompt: string, more: object = {}) => ({
  name: "Agent",
  input: { description: "look", prompt, ...more },
});

async function play(steps: readonly Step[], options: RuntimeOptions = {}) {
  await using sample = await createSampleRuntime(steps, options);
  const events: RunEvent[] = [];
  const handle = sample.runtime.run("Begin.");
  const watching = (async () => {
    for await (const event of handle.events) events.push(event);
  })();
  const result = await handle.result;
  await watching;
  const projects = join(sample.home, ".claude", "projects");
  const [project = ""] = existsSync(projects) ? readdirSync(projects) : [];
  const folder = join(projects, project, result.sessionId);
  const files = existsSync(folder) ? readdirSync(folder, { recursive: true }).map(String).sort() : [];
  const texts = new Map(
    files
      .filter((name) => /\.(?:jsonl|json|output)$/.test(name))
      .map((name) => [name, readFileSync(join(folder, name), "utf8")]),
  );
  const read = (pattern: RegExp) => [...texts].find(([name]) => pattern.test(name))?.[1] ?? "";
  return { result, events, requests: sample.requests, files, read };
}

describe("a main agent with children, over the whole runtime", () => {
  test("[SPN-5, AGT-3] three at the same time, and their texts come back as results", async () => {
    const prompts = ["TASK-ONE", "TASK-TWO", "TASK-THREE"];
    const { result, requests } = await play([
      main({ calls: prompts.map((prompt) => spawnCall(prompt)) }),
      ...prompts.map((prompt) => child(prompt, { text: `${prompt} is done.` })),
      main({ text: "All three are done." }),
    ]);
    expect(result).toMatchObject({
      status: "completed",
      text: "All three are done.",
      totals: { toolUses: 3 },
    });
    const last = JSON.stringify(requests.at(-1)?.messages);
    for (const prompt of prompts) expect(last).toContain(`${prompt} is done.`);
  });

  test("[TRN-1] each has its own transcript, with its meta file, and the main one is not touched by it", async () => {
    const { files, read, result } = await play([
      main({ calls: [spawnCall("TASK-ONE", { subagent_type: "Explore" })] }),
      child("TASK-ONE", { text: "Seen." }),
      main({ text: "Good." }),
    ]);
    expect(files.some((name) => /^subagents\/agent-a[0-9a-f]{16}\.jsonl$/.test(name))).toBe(true);
    expect(JSON.parse(read(/meta\.json$/))).toMatchObject({
      agentType: "Explore",
      description: "look",
      spawnDepth: 1,
    });
    const lines = read(/agent-.*\.jsonl$/)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.every((line) => line.isSidechain === true && line.sessionId === result.sessionId)).toBe(
      true,
    );
  });

  test("[LIM-4] the sums of the tree are those of all its agents", async () => {
    const { result } = await play([
      main({ calls: [spawnCall("TASK-ONE")], usage: { outputTokens: 10 } }),
      child("TASK-ONE", { text: "Seen.", usage: { outputTokens: 100 } }),
      main({ text: "Good.", usage: { outputTokens: 5 } }),
    ]);
    expect(result.agents[0]?.totals.usage.outputTokens).toBe(15);
    expect(result.totals.usage.outputTokens).toBe(115);
  });

  test("[LIM-4] a child that was resumed counts with all of its runs", async () => {
    const { result } = await play([
      main({ calls: [spawnCall("TASK-ONE")], usage: { outputTokens: 10 } }),
      child("TASK-ONE", { text: "Seen.", usage: { outputTokens: 100 } }),
      main({
        respond: (request) => {
          const resume = /a[0-9a-f]{16}/.exec(JSON.stringify(request.messages.at(-1)))?.[0];
          return { calls: [spawnCall("And then?", { resume })], usage: { outputTokens: 5 } };
        },
      }),
      child("TASK-ONE", { text: "Seen more.", usage: { outputTokens: 1000 } }),
      main({ text: "Good.", usage: { outputTokens: 1 } }),
    ]);
    expect(result).toMatchObject({ text: "Good.", totals: { usage: { outputTokens: 1116 } } });
    expect(result.agents.map(({ totals }) => totals.usage.outputTokens)).toEqual([16, 1100]);
  });

  test("[BGR-2, BGR-5] a child in the background is waited for at the end, and its result reaches the model", async () => {
    const { result, requests } = await play([
      main({ calls: [spawnCall("TASK-ONE", { run_in_background: true })] }),
      child("TASK-ONE", { text: "Found late." }),
      main({ text: "Meanwhile." }),
      main({ text: "It was found." }),
    ]);
    expect(result.text).toBe("It was found.");
    expect(JSON.stringify(requests.at(-1)?.messages)).toContain("Found late.");
    expect(JSON.stringify(requests.at(-1)?.messages)).toContain("task-notification");
  });

  test("[TSK-1, TSK-2] TaskOutput reads a child and TaskStop ends it", async () => {
    const id = { current: "" };
    const { result, requests } = await play([
      main({ calls: [spawnCall("TASK-ONE", { run_in_background: true })] }),
      child("TASK-ONE", { text: "Half", failure: "stall", after: 1 }),
      main({
        respond: (request) => {
          id.current = /a[0-9a-f]{16}/.exec(JSON.stringify(request.messages.at(-1)))?.[0] ?? "";
          return { calls: [{ name: "TaskOutput", input: { task_id: id.current, block: false } }] };
        },
      }),
      main({ respond: () => ({ calls: [{ name: "TaskStop", input: { task_id: id.current } }] }) }),
      main({ text: "Stopped it." }),
      main({ text: "Stopped it, and heard so." }),
    ]);
    expect(result.status).toBe("completed");
    expect(JSON.stringify(requests)).toContain("running");
    expect(JSON.stringify(requests.at(-1)?.messages)).toContain("stopped");
  });

  test("[BGR-4] with background work switched off the parameter is not offered", async () => {
    const { requests } = await play([main({ text: "Hi." })], {
      env: { PATH: process.env["PATH"], CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1" },
    });
    const tool = requests[0]?.tools.find(({ name }) => name === "Agent");
    expect(JSON.stringify(tool)).not.toContain("run_in_background");
  });

  test("[TLS-7] a child is not offered the Agent tool, whatever its definition lists", async () => {
    const { requests } = await play(
      [
        main({ calls: [spawnCall("TASK-ONE", { subagent_type: "boss" })] }),
        child("TASK-ONE", { text: "No helpers." }),
        main({ text: "Fine." }),
      ],
      {
        agents: [
          { name: "boss", description: "Bosses.", prompt: "You boss.", tools: ["Agent", "Task", "Read"] },
        ],
      },
    );
    expect(requests[1]?.tools.map(({ name }) => name)).toEqual(["Read"]);
  });

  test("[PRM-4, PRM-5] a child's calls are decided by the session's rules", async () => {
    const { requests } = await play([
      main({ calls: [spawnCall("TASK-ONE")] }),
      child("TASK-ONE", { calls: [{ name: "Bash", input: { command: "touch made-by-child" } }] }),
      child("TASK-ONE", { text: "It was refused." }),
      main({ text: "I see." }),
    ]);
    expect(JSON.stringify(requests[2]?.messages)).toContain("Bash was not allowed");
  });

  test("[HKS-2, HKS-8] hooks of the session bind a child, and its start and end are reported once each", async () => {
    const received: string[] = [];
    const { requests } = await play(
      [
        main({ calls: [spawnCall("TASK-ONE", { subagent_type: "Explore" })] }),
        child("TASK-ONE", { calls: [{ name: "Glob", input: { pattern: "*" } }] }),
        child("TASK-ONE", { text: "Guarded." }),
        main({ text: "Good." }),
      ],
      {
        hooks: (["PreToolUse", "SubagentStart", "SubagentStop"] as const).map((event) => ({
          event,
          run: async (input: { readonly [key: string]: unknown }) => {
            received.push(`${event} ${input["agent_type"] ?? "main"} ${input["tool_name"] ?? ""}`.trim());
            return event === "PreToolUse" && input["tool_name"] === "Glob"
              ? {
                  hookSpecificOutput: {
                    hookEventName: event,
                    permissionDecision: "deny",
                    permissionDecisionReason: "guarded",
                  },
                }
              : {};
          },
        })),
      } as RuntimeOptions,
    );
    expect(received).toEqual([
      "PreToolUse main Agent",
      "SubagentStart Explore",
      "PreToolUse Explore Glob",
      "SubagentStop Explore",
    ]);
    expect(JSON.stringify(requests[2]?.messages)).toContain("guarded");
  });
});

test("[SPN-1] a start goes through its steps in order, each visible as an event, the hooks among them", async () => {
  const order: string[] = [];
  await using sample = await createSampleRuntime(["Done."], {
    hooks: [
      {
        event: "SubagentStart",
        run: async () => {
          order.push("SubagentStart ran");
          return {};
        },
      },
    ],
  } as RuntimeOptions);
  const handle = sample.runtime.spawn("Explore", "Look.");
  for await (const event of handle.events) {
    if (event.type === "spawn-advanced") order.push(...event.steps.map(({ step }) => step));
    else if (event.type === "turn-started") order.push("turn");
  }
  expect(order.filter((entry) => entry !== "SubagentStart ran")).toEqual([...spawnSteps, "turn"]);
  expect(order.indexOf("SubagentStart ran")).toBeLessThan(order.indexOf("hooks"));
});

describe("asking for a child", () => {
  const bash = { name: "Bash", input: { command: "echo granted > granted.txt" } };

  test("[PRM-6] before a child goes to the background the person is asked once, and what is granted is what it has", async () => {
    const asked: string[] = [];
    const { requests } = await play(
      [
        main({ calls: [spawnCall("TASK-ONE", { run_in_background: true })] }),
        main({ text: "Meanwhile." }),
        child("TASK-ONE", { calls: [bash] }),
        child("TASK-ONE", { text: "Ran it." }),
        main({ text: "Good." }),
      ],
      {
        approver: {
          async approve({ tool, suggestedRules }) {
            asked.push(tool);
            expect(suggestedRules).toContain("Bash");
            return { type: "allow", for: "agent", rules: ["Bash"] };
          },
        },
      },
    );
    expect(asked).toEqual(["Agent"]);
    expect(JSON.stringify(requests)).not.toContain("Bash was not allowed");
  });

  test("[PRM-5] without that grant its call is refused, and no question is asked later", async () => {
    const asked: string[] = [];
    const { requests } = await play(
      [
        main({ calls: [spawnCall("TASK-ONE", { run_in_background: true })] }),
        main({ text: "Meanwhile." }),
        child("TASK-ONE", { calls: [bash] }),
        child("TASK-ONE", { text: "It was refused." }),
        main({ text: "I see." }),
      ],
      {
        approver: {
          async approve({ tool }) {
            asked.push(tool);
            return { type: "deny" };
          },
        },
      },
    );
    expect(asked).toEqual(["Agent"]);
    expect(JSON.stringify(requests)).toContain("Bash was not allowed");
  });

  test("[BGR-3] a question that is open when the child is moved to the background is answered no", async () => {
    const asked = Promise.withResolvers<void>();
    await using sample = await createSampleRuntime([{ calls: [bash] }, "It was refused."], {
      approver: {
        approve: (_request, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason));
            asked.resolve();
          }),
      },
    });
    const handle = sample.runtime.spawn("general-purpose", "Work.");
    await asked.promise;
    await handle.detach();
    expect(await handle.result).toMatchObject({
      status: "completed",
      text: "It was refused.",
      denials: [{ call: { name: "Bash" } }],
    });
  });

  test("[PRM-7] one that did not have a permission is resumed in the foreground, where it can ask", async () => {
    const asked: string[] = [];
    await using sample = await createSampleRuntime(
      [{ calls: [bash] }, "Refused.", { calls: [bash] }, "Ran it."],
      {
        agents: [{ name: "bg", description: "Works.", prompt: "You work.", background: true }],
        approver: {
          async approve({ tool }) {
            asked.push(tool);
            return tool === "Bash" ? { type: "allow", for: "call" } : { type: "deny" };
          },
        },
      },
    );
    const first = await sample.runtime.spawn("bg", "Work.").result;
    expect(first.denials).toHaveLength(1);
    const second = await sample.runtime.spawn("bg", "Try again.", {
      resume: first.agentId,
      background: false,
    }).result;
    expect(second).toMatchObject({ agentId: first.agentId, text: "Ran it.", denials: [] });
    expect(asked).toEqual(["Agent", "Bash"]);
  });
});

describe("[SDK-1] a program starts agents itself", () => {
  test("two lines: start and await", async () => {
    await using sample = await createSampleRuntime(["Here it is."]);
    const result = await sample.runtime.spawn("Explore", "Find it.").result;
    expect(result).toMatchObject({ status: "completed", text: "Here it is.", agentType: "Explore" });
  });

  test("the handle is iterable, takes messages, can be stopped", async () => {
    await using sample = await createSampleRuntime([{ text: "Never ends", failure: "stall", after: 1 }]);
    const handle = sample.runtime.spawn("general-purpose", "Work.");
    const seen: string[] = [];
    for await (const event of handle.events) {
      seen.push(event.type);
      if (event.type === "model-streamed" && !seen.includes("asked to stop")) {
        expect(await handle.send("more")).toBe(true);
        seen.push("asked to stop");
        void handle.stop();
      }
    }
    expect(seen.at(-1)).toBe("run-ended");
    expect(await handle.result).toMatchObject({ status: "stopped", reason: "stopped-by-program" });
  });

  test("an unknown agent is refused with the nearest name", async () => {
    await using sample = await createSampleRuntime([]);
    await expect(sample.runtime.spawn("Explor", "x").result).rejects.toThrow(/Did you mean Explore/);
  });
});
