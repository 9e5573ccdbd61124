import type { RunEnding, RunEvent } from "@retinue/core/conversation/run-event.ts";
import { noUsage } from "@retinue/core/conversation/usage.ts";
import type { AgentPlan } from "@retinue/core/planning/agent-plan.ts";
import { startedTask } from "@retinue/core/protocol/agent-state.ts";
import { describe, expect, it } from "vitest";
import type { CliHost } from "../shared/cli-host.ts";
import { describeCall } from "../shared/describe-call.ts";
import { createProgressView } from "./printer.ts";

function watch(isTerminal: boolean, reported: readonly string[] = []) {
  let text = "";
  const stderr = {
    write: (more: string) => {
      text += more;
    },
    isTerminal,
    isColourAllowed: false,
  };
  // The view uses nothing of the host but its stderr.
  const view = createProgressView({ stderr } as unknown as CliHost, new Set(reported));
  return { view, text: () => text };
}

const call = (name: string, input: unknown, id = "t1") => ({ type: "tool_use", id, name, input }) as const;
const ending: RunEnding = {
  status: "completed",
  reason: "end_turn",
  text: "",
  denials: [],
  totals: { usage: noUsage, turns: 1, toolUses: 0, durationMs: 1, modelMs: 1 },
};

describe("what is shown on stderr", () => {
  it("notes of the plan are reported, but none twice", () => {
    const { view, text } = watch(false, ["said before"]);
    // Nothing else of the plan is read.
    view.begin({ notes: ["said before", "new"] } as unknown as AgentPlan);
    expect(text()).toBe("note: new\n");
  });

  it("calls are shown to a person only", () => {
    for (const isTerminal of [true, false]) {
      const { view, text } = watch(isTerminal);
      view.show({ type: "call-started", call: call("Read", { file_path: "a.txt" }), effect: "read" });
      expect(text()).toBe(isTerminal ? "· Read a.txt\n" : "");
    }
  });

  it("what children do is shown to a person only, each line with who it is", () => {
    const start = {
      id: "a1",
      agentType: "Explore",
      description: "look",
      background: false,
      parentId: "main",
    };
    const state = { ...startedTask({ ...start, at: 1000 }), endedAt: 3500, toolUses: 1 };
    for (const isTerminal of [true, false]) {
      const { view, text } = watch(isTerminal);
      const started = {
        type: "call-started",
        call: call("Grep", { pattern: "foo" }),
        effect: "read",
      } as const;
      const show = (event: RunEvent): void => view.showChild?.(event, () => state);
      show(started);
      show({ type: "turn-started", turn: 2 });
      show({ type: "run-ended", ending });
      const lines = "[Explore look] · Grep foo\n[Explore look] completed: 1 call, 2.5 s\n";
      expect(text()).toBe(isTerminal ? lines : "");
    }
  });

  it("every reader is notified that a child waits for a quota, or that another model answers it [LIM-7, MDL-8]", () => {
    const start = {
      id: "a1",
      agentType: "Explore",
      description: "look",
      background: false,
      parentId: "main",
    };
    const { view, text } = watch(false);
    const show = (event: RunEvent): void =>
      view.showChild?.(event, () => startedTask({ ...start, at: 1000 }));
    show({ type: "quota-waiting", provider: "anthropic", until: 0 });
    show({ type: "quota-renewed", provider: "anthropic" });
    show({ type: "model-fell-back", from: "a", to: "b", code: "overloaded" });
    expect(text()).toMatch(
      /^\[Explore look\] The quota of anthropic is used up; .*\n\[Explore look\] There is a new quota .*\n\[Explore look\] a could not answer \(overloaded\); b answers instead\.\n$/,
    );
  });

  it("a retry is reported to every reader, as a sentence of its own", () => {
    const { view, text } = watch(false);
    const retry = { attempt: 1, maxAttempts: 11, delayMs: 1500, code: "overloaded", message: "Busy." };
    view.show({ type: "model-retried", ...retry });
    view.show({ type: "model-retried", ...retry, message: "no more" });
    expect(text()).toBe("Busy. Trying again in 2 s.\nno more. Trying again in 2 s.\n");
  });

  it("an error and refused calls come at the end, without control characters", () => {
    const { view, text } = watch(false);
    const denials = ["Bash", "Write", "Bash"].map((name) => ({ call: call(name, {}), reason: "No." }));
    view.end({ ...ending, error: "It \u001b[31mfailed.", denials });
    expect(text()).not.toContain("\u001b");
    expect(text()).toMatch(
      /^retinue: It .*failed\.\n3 calls were not allowed; .*--allowedTools "Bash,Write"/,
    );
  });

  it("one refused call is one call", () => {
    const { view, text } = watch(false);
    view.end({ ...ending, denials: [{ call: call("Bash", {}), reason: "No." }] });
    expect(text()).toMatch(/^1 call was not allowed/);
  });

  it.each([
    [call("Bash", { command: "ls\nrm" }), "Bash ls"],
    [call("Grep", { pattern: "x", output_mode: "count" }), "Grep x"],
    [call("TodoWrite", { todos: [] }), "TodoWrite"],
    [call("Odd", "text"), "Odd"],
  ])("%j is reported as %j", (made, text) => {
    expect(describeCall(made)).toBe(text);
  });
});
