import { generalPurpose } from "@retinue/config/agents/builtin/general-purpose.ts";
import { barePorts } from "@retinue/testing/bare-ports.ts";
import { describeExecutorContract } from "@retinue/testing/describe-executor-contract.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type ChildPlan, plannedDefinition } from "../planning/agent-plan.ts";
import { defineTool } from "../tools/tool.ts";
import { createLocalExecutor } from "./run-agent.ts";

const echo = defineTool<{ text: string }>({
  name: "Echo",
  description: "Gives back its text.",
  effect: "read",
  input: z.object({ text: z.string() }),
  call: async ({ text }) => ({ content: text }),
});

function planOf(prompt: string): ChildPlan {
  return {
    sessionId: "s",
    agent: { id: "a1", name: "general-purpose" },
    model: { value: "scripted", from: "parent" },
    chosenModel: { id: "scripted" },
    tools: [{ name: "Echo" }],
    spawn: "none",
    policy: { mode: "default", allow: [], ask: [], deny: [], workingDirectories: ["/p"], home: "/h" },
    modeFrom: "the parent",
    system: ["Work."],
    maxTurns: { value: 10, from: "the default" },
    directory: "/p",
    sessionDirectory: "/p",
    definition: plannedDefinition(generalPurpose),
    notes: [],
    overrode: [],
    task: {
      agentType: "general-purpose",
      description: "work",
      prompt,
      background: false,
      parentId: "main",
      resumed: false,
      forksContext: false,
    },
  };
}

describeExecutorContract(
  "the executor of this process",
  async (steps) => {
    const model = createScriptedModel(steps);
    let held = 0;
    const executor = createLocalExecutor(async (plan) => {
      held += 1;
      return {
        plan,
        ports: barePorts({ model, tools: [echo] }, plan.agent),
        prepare: async (content) => ({ type: "ready", content }),
        end: async () => {
          held -= 1;
        },
      };
    });
    return {
      executor,
      execution: (prompt) => JSON.parse(JSON.stringify({ plan: planOf(prompt), history: [] })),
      held: () => held,
      dispose: async () => undefined,
    };
  },
  { describe, test, expect },
);
