import { existsSync } from "node:fs";
import { createWorkspace } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import type { AgentEvent } from "../protocol/agent-event.ts";
import type { Answer, Question } from "../protocol/question.ts";
import { type AgentTree, openTree, runPrompt, type TreeOptions } from "./agent-tree.ts";
import { createHostedRuntime } from "./create-runtime.ts";

/** Asks for a colour before it lists its tools. */
const askingServer = {
  command: process.execPath,
  args: [new URL("../../../../test/fixtures/mcp/unruly-server.mjs", import.meta.url).pathname, "ask-first"],
};

async function open(
  steps: readonly Step[],
  options: Partial<TreeOptions> = {},
  answer?: (question: Question) => Answer | undefined,
) {
  const workspace = await createWorkspace();
  const runtime = createHostedRuntime({
    cwd: workspace.project,
    home: `${workspace.root}/home`,
    model: createScriptedModel(steps),
    ...(options.asks?.elicitations === true ? { mcpServers: { st: askingServer } } : {}),
  });
  const events: AgentEvent[] = [];
  let tree: AgentTree | undefined;
  onTestFinished(async () => {
    await tree?.close();
    await runtime.close();
    await workspace[Symbol.asyncDispose]();
  });
  tree = await openTree({
    runtime,
    session: {},
    ...options,
    onEvent(event, submit) {
      events.push(event);
      options.onEvent?.(event, submit);
      const given = event.type === "question-asked" ? answer?.(event.question) : undefined;
      if (event.type === "question-asked" && given !== undefined)
        void submit({ type: "answer", question: event.question.id, answer: given });
    },
  });
  const ofType = <Type extends AgentEvent["type"]>(type: Type) =>
    events.filter((event): event is Extract<AgentEvent, { type: Type }> => event.type === type);
  return { tree, events, ofType, workspace };
}

const write = (name: string): Step => ({
  calls: [{ name: "Write", input: { file_path: name, content: "x" } }],
});

describe("prompts", () => {
  test("each is answered in its turn and ends exactly once", async () => {
    const { tree, ofType } = await open(["One.", "Two."]);
    const outcomes = await Promise.all([
      runPrompt(tree, { content: "a", id: "p1" }),
      runPrompt(tree, { content: "b", id: "p2" }),
    ]);
    expect(outcomes.map((each) => each.outcome === "ended" && each.ending.text)).toEqual(["One.", "Two."]);
    expect(ofType("prompt-started").map(({ id }) => id)).toEqual(["p1", "p2"]);
    expect(ofType("prompt-ended").map(({ id }) => id)).toEqual(["p1", "p2"]);
    await tree.idle();
    expect([tree.status().isBusy, tree.prompts()]).toEqual([false, []]);
  });

  test("those that wait can be withdrawn, and the running turn interrupted", async () => {
    const { tree } = await open([{ text: "Never.", failure: "stall" }]);
    const running = runPrompt(tree, { content: "a" });
    const waiting = runPrompt(tree, { content: "b" });
    await tree.submit("main", { type: "withdraw" });
    await tree.submit("main", { type: "interrupt" });
    expect((await waiting).outcome).toBe("withdrawn");
    expect(await running).toMatchObject({ outcome: "ended", isInterrupted: true });
  });

  test("one that arrives during a turn is read after results of tools, where the host wants that", async () => {
    const { tree, ofType } = await open(
      [
        (request) => {
          void tree.submit("main", { type: "prompt", content: "and this", id: "p2" });
          return {
            calls: [{ name: "Glob", input: { pattern: "*" } }],
            text: String(request.messages.length),
          };
        },
        "Both.",
      ],
      { reads: "tool-calls" },
    );
    const first = await runPrompt(tree, { content: "do it", id: "p1" });
    expect(first).toMatchObject({ outcome: "ended", ending: { text: "Both." } });
    expect(ofType("prompt-read").map(({ prompt }) => prompt.id)).toEqual(["p2"]);
    expect(ofType("prompt-ended").map(({ id }) => id)).toEqual(["p1", "p2"]);
    // Transcripts keep it in the form in which it was sent.
    expect(tree.facts.messages().map(({ content }) => content)).toContain("and this");
  });

  test("a host may answer a prompt itself or refuse it", async () => {
    const ending = {
      status: "completed",
      reason: "local",
      text: "Mine.",
      denials: [],
      totals: {
        usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
        turns: 0,
        toolUses: 0,
        durationMs: 0,
        modelMs: 0,
      },
    } as const;
    const { tree } = await open([], {
      prepare({ prompt }) {
        if (prompt.content === "no") throw new Error("refused");
        return { ending };
      },
    });
    expect(await runPrompt(tree, { content: "yes" })).toMatchObject({ ending: { text: "Mine." } });
    expect(await runPrompt(tree, { content: "no" })).toMatchObject({
      outcome: "failed",
      error: { message: "refused" },
    });
  });

  test("a closed tree ends what waits and takes no more", async () => {
    const { tree } = await open([{ text: "Never.", failure: "stall" }]);
    const [running, waiting] = [runPrompt(tree, { content: "a" }), runPrompt(tree, { content: "b" })];
    await tree.close();
    expect((await waiting).outcome).toBe("withdrawn");
    expect(await running).toMatchObject({ isInterrupted: true });
    await expect(runPrompt(tree, { content: "c" })).rejects.toThrow("does not accept prompts");
  });
});

describe("questions", () => {
  test("a program is asked about a call, and its updates hold from then on", async () => {
    const { tree, ofType, workspace } = await open(
      [write("a.txt"), write("b.txt"), "Done."],
      { asks: { permissions: "program" }, changesRights: "tree" },
      () => ({ type: "allow", updates: [{ type: "setMode", mode: "acceptEdits" }] }),
    );
    await runPrompt(tree, { content: "write" });
    expect(ofType("question-asked").map(({ question }) => question.kind)).toEqual(["permission"]);
    expect(ofType("question-closed")).toHaveLength(1);
    expect([existsSync(workspace.path("a.txt")), existsSync(workspace.path("b.txt"))]).toEqual([true, true]);
    expect(tree.status().mode).toBe("acceptEdits");
  });

  test("a person refuses with words that the agent reads", async () => {
    const { tree, ofType, workspace } = await open(
      [write("a.txt"), "Fine."],
      { asks: { permissions: "person" } },
      () => ({ type: "deny", message: "not there" }),
    );
    await runPrompt(tree, { content: "write" });
    expect(ofType("call-finished")[0]?.denied).toContain("not there");
    expect(existsSync(workspace.path("a.txt"))).toBe(false);
  });

  test("a plan is approved once, in the mode that the person names", async () => {
    const { tree, ofType } = await open(
      [{ calls: [{ name: "ExitPlanMode", input: { plan: "Write it." } }] }, "Done."],
      {
        asks: { plans: "person", forms: true },
        changesRights: "main",
        reads: "model-calls",
        session: { permissionMode: "plan" },
      },
      (question) => (question.kind === "plan" ? { type: "approve", mode: "acceptEdits" } : undefined),
    );
    await runPrompt(tree, { content: "plan" });
    expect(ofType("question-asked")).toMatchObject([{ question: { kind: "plan", plan: "Write it." } }]);
    expect(tree.status().mode).toBe("acceptEdits");
  });

  test("an open question is closed when its turn is interrupted, and takes no answer then", async () => {
    const { tree, ofType } = await open(
      [write("a.txt")],
      { asks: { permissions: "program" } },
      (question) => {
        setImmediate(() => void tree.submit("main", { type: "interrupt" }));
        return void question;
      },
    );
    await runPrompt(tree, { content: "write" });
    expect(ofType("question-closed")).toHaveLength(1);
    expect(tree.questions()).toEqual([]);
    const answer = { type: "allow" } as const;
    await expect(tree.submit("main", { type: "answer", question: "question-1", answer })).rejects.toThrow(
      "no open question question-1",
    );
  });
});

describe("while the session is opened", () => {
  const asking = (more: Partial<TreeOptions>) => open([], { asks: { elicitations: true }, ...more });

  test("a question of a server is answered by the host, and the session opens with the answer [DRP-1]", async () => {
    const { tree, ofType } = await asking({
      onEvent(event, submit) {
        if (event.type !== "question-asked") return;
        void submit({ type: "configure", effort: "low" });
        const answer = { type: "elicited", action: "accept", content: { colour: "blue" } } as const;
        void submit({ type: "answer", question: event.question.id, answer });
      },
    });
    const tools = await tree.facts.toolsOf();
    expect(tools.find(({ name }) => name === "mcp__st__echo")?.description).toContain("blue");
    expect([ofType("question-asked").length, ofType("question-closed").length]).toEqual([1, 1]);
    expect([tree.status().effort, tree.questions()]).toEqual(["low", []]);
  });

  test("the host may give up, and other ops are refused until it is open", async () => {
    const refused: Promise<unknown>[] = [];
    const opening = asking({
      onEvent(event, submit) {
        if (event.type !== "question-asked") return;
        refused.push(submit({ type: "prompt", content: "a" }));
        void submit({ type: "close" });
      },
    });
    await expect(opening).rejects.toThrow("The session was closed.");
    await expect(refused[0]).rejects.toThrow("does not accept prompt yet");
  });
});

describe("configuration and children", () => {
  test("an unknown mode is refused, and bypassing where it was not allowed", async () => {
    const { tree } = await open([], { changesRights: "tree" });
    const configure = (mode: never) => tree.submit("main", { type: "configure", mode });
    await expect(configure("everything" as never)).rejects.toThrow("unknown permission mode");
    await expect(configure("bypassPermissions" as never)).rejects.toThrow("not allowed at the start");
  });

  test("events of children carry their agent and come in one order with those of the main agent", async () => {
    const spawn = { subagent_type: "Explore", description: "look", prompt: "Look." };
    const { tree, events, ofType } = await open([
      { match: "Go.", calls: [{ name: "Agent", input: spawn }] },
      { match: "Look.", text: "Found." },
      "Thanks.",
    ]);
    await runPrompt(tree, { content: "Go." });
    const [child] = tree.list();
    expect(ofType("agent-changed").map(({ state }) => state.status)).toEqual(["running", "completed"]);
    expect(tree.get(child?.id ?? "")?.state()?.lastText).toBe("Found.");
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
    expect(tree.totals().agents.map(({ agentId }) => agentId)).toEqual(["main", child?.id]);
  });

  test("a late reader gets the events from the number it names", async () => {
    const { tree, events } = await open(["One."]);
    await runPrompt(tree, { content: "a" });
    const first = await tree.events(1).next();
    expect(first.value).toBe(events[0]);
  });

  test("a command of the person runs by the rules, and the agent reads of it with the next prompt", async () => {
    const { tree, ofType } = await open(
      [
        ({ messages }) =>
          JSON.stringify(messages.at(-1)?.content).includes("$ echo hello") ? "Seen." : "No.",
      ],
      { session: { allowedTools: ["Bash(echo:*)"] } },
    );
    await tree.submit("main", { type: "shell", command: "echo hello" });
    expect(ofType("shell-finished")[0]?.text).toContain("hello");
    expect(await runPrompt(tree, { content: "and?" })).toMatchObject({ ending: { text: "Seen." } });
  });
});
