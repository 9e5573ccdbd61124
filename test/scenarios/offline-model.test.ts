import { execFileSync } from "node:child_process";
import { type ToolUseBlock, toolCallsOf } from "@retinue/core/conversation/message.ts";
import type { RunEnding } from "@retinue/core/conversation/run-event.ts";
import type { LoopPorts } from "@retinue/core/loop/loop-ports.ts";
import { runAgentLoop } from "@retinue/core/loop/run-agent-loop.ts";
import { createOfflineModel } from "@retinue/core/models/offline/create-offline-model.ts";
import { offlineLabel } from "@retinue/core/models/offline/offline-answer.ts";
import { globTool } from "@retinue/core/tools/builtin/glob-tool.ts";
import { grepTool } from "@retinue/core/tools/builtin/grep-tool.ts";
import { readTool } from "@retinue/core/tools/builtin/read-tool.ts";
import { defineTool, type Tool } from "@retinue/core/tools/tool.ts";
import { createWorkspace, type Workspace } from "@retinue/testing/sample-runtime.ts";
import { expect, test } from "vitest";

const readers = [globTool, grepTool, readTool];

/** Runs the real loop with real tools on the offline model. */
async function run(workspace: Workspace, prompt: string, tools: readonly Tool[] = readers) {
  const asked: ToolUseBlock[] = [];
  const failed = new Set<string>();
  let ending: RunEnding | undefined;
  const ports: LoopPorts = {
    model: createOfflineModel(),
    tools,
    authorize: async ({ input }) => ({ type: "allowed", input }),
    toolContext: (callId, given) => workspace.context("main", { callId, ...given }),
    takeMessages: () => [],
    now: () => 0,
  };
  const input = {
    system: [`Working directory: ${workspace.project}`],
    history: [],
    prompt: { role: "user", content: prompt },
    maxTurns: 20,
    reminder: "Change nothing.",
  } as const;
  for await (const event of runAgentLoop(input, ports, new AbortController().signal)) {
    if (event.type === "assistant-answered") asked.push(...toolCallsOf(event.message));
    if (event.type === "call-finished" && event.isError) failed.add(event.call.id);
    if (event.type === "run-ended") ending = event.ending;
  }
  const calls = asked.map(({ id, name }) => (failed.has(id) ? `${name} failed` : name));
  return { calls, ending, text: ending?.text ?? "" };
}

async function createProject(): Promise<Workspace> {
  const workspace = await createWorkspace();
  execFileSync("git", ["init", "--quiet"], { cwd: workspace.project });
  await workspace.write("README.md", "# Demo\n\nA demo with two parts.\n");
  await workspace.write(
    "package.json",
    '{"name":"demo","scripts":{"test":"vitest run"},"main":"./src/main.ts"}\n',
  );
  await workspace.write("src/main.ts", 'import { greet } from "./greet.ts";\n\ngreet("you");\n');
  await workspace.write(
    "src/greet.ts",
    "/** Greets. */\nexport function greet(name: string) {\n  return name;\n}\n",
  );
  await workspace.write("docs/a.md", "# A\n");
  await workspace.write("lib/old.py", "def old():\n    pass\n");
  await workspace.write("dist/out.js", "ignored\n");
  await workspace.write(".gitignore", "dist\n");
  return workspace;
}

test("[MDL-4] a newcomer gets a map of their own folder from real tools, without an account", async () => {
  await using workspace = await createProject();
  const { calls, ending, text } = await run(workspace, "what is here?");
  expect(ending).toMatchObject({ status: "completed", denials: [], totals: { costUsd: 0 } });
  expect(calls).toEqual(["Glob", "Grep", "Read", "Read"]);
  expect(text.startsWith(offlineLabel)).toBe(true);
  for (const part of [
    "7 files, 15 lines of text.",
    "- src/: 2 files, 7 lines (TypeScript)",
    "A demo with two parts.",
    "- npm run test: vitest run",
    "- src/main.ts (declared)",
  ]) {
    expect(text).toContain(part);
  }
  expect(text).not.toContain("dist");
  expect((await run(workspace, "what is here?")).text).toBe(text);
});

test("[MDL-4] it finds where a word is used and shows the likely definition", async () => {
  await using workspace = await createProject();
  const { calls, text } = await run(workspace, "where is greet used?");
  expect(calls).toEqual(["Grep", "Glob", "Read"]);
  expect(text).toContain("3 lines in 2 files.");
  expect(text).toContain("src/greet.ts:2");
  expect(text).toContain("- src/main.ts (2)\n  1: import");
  expect(text).toContain("Files with it in their name: src/greet.ts");
});

test("[MDL-4] it reads a file that is named only by its last part", async () => {
  await using workspace = await createProject();
  const { calls, text } = await run(workspace, "explain greet.ts");
  expect(calls).toEqual(["Read failed", "Glob", "Read"]);
  expect(text).toContain("First comment: Greets.");
  expect(text).toContain("- 2: export function greet(name: string)");
});

test("[MDL-4] with child agents it sends three out at the same time and one afterwards, and puts their words together", async () => {
  await using workspace = await createProject();
  const started: string[] = [];
  const agent = defineTool<{ readonly description: string; readonly prompt: string }>({
    name: "Agent",
    description: "Hands work to a child: Explore, Plan.",
    effect: "spawn",
    inputSchema: {
      type: "object",
      properties: { description: {}, prompt: {}, subagent_type: {} },
    },
    isConcurrencySafe: () => true,
    call: async ({ description, prompt }) => {
      started.push(description);
      return { content: (await run(workspace, prompt)).text };
    },
  });
  const { calls, text } = await run(workspace, "give me an overview", [...readers, agent]);
  expect(new Set(started.slice(0, 3))).toEqual(new Set(["Map src", "Map docs", "Map lib"]));
  expect(started.slice(3)).toEqual(["Plan a first reading"]);
  expect(calls).toHaveLength(8);
  expect(text.split(offlineLabel)).toHaveLength(2);
  expect(text).toContain("### Explore: Map src\n#### Map of src\n2 files, 7 lines of text.");
  expect(text).toContain("### Plan: Plan a first reading");
});
