import { describe, expect, test } from "vitest";
import { createSessionFiles } from "../file-ledger.ts";
import type { ToolContext, ToolHost } from "../tool.ts";
import { askUserQuestionTool, createTodoStore, createTodoWriteTool } from "./create-builtin-tools.ts";

function context(host: ToolHost, agentId = "main"): ToolContext {
  return {
    signal: new AbortController().signal,
    directory: "/p",
    workingDirectories: ["/p"],
    sessionId: "s1",
    agent: { id: agentId, name: agentId },
    agentPath: [{ id: agentId, name: agentId }],
    callId: "c",
    files: createSessionFiles().forAgent(),
    host,
    environment: {},
    outputDirectory: "/p/out",
    progress: () => undefined,
  };
}

const step = (content: string, status: string) => ({ content, status, activeForm: `${content}…` });

describe("TodoWrite", () => {
  test("replaces the list, shows the host, and gives the old and the new one", async () => {
    const todos = createTodoStore();
    const tool = createTodoWriteTool({ todos });
    const seen: unknown[] = [];
    const host: ToolHost = { todosChanged: (list) => void seen.push(list) };
    const first = [step("Read", "in_progress"), step("Write", "pending")];
    const second = [step("Read", "completed"), step("Write", "in_progress")];
    await tool.call({ todos: first }, context(host));
    const outcome = await tool.call({ todos: second }, context(host));
    expect(outcome.data).toEqual({ oldTodos: first, newTodos: second });
    expect(outcome.content).toBe("The list is kept: 1 completed, 1 in progress, 0 pending.");
    expect(seen).toEqual([first, second]);
    expect(todos.read("main")).toEqual(second);
  });

  test("keeps a list for each agent", async () => {
    const todos = createTodoStore();
    const tool = createTodoWriteTool({ todos });
    await tool.call({ todos: [step("Mine", "pending")] }, context({}, "child"));
    expect(todos.read("main")).toEqual([]);
    expect(todos.read("__proto__")).toEqual([]);
  });

  test.each([
    [[step("a", "in_progress"), step("b", "in_progress")], "2 steps are in progress"],
    [[step("a", "pending")], "No step is in progress"],
  ])("advises one step in progress", async (todos, advice) => {
    const outcome = await createTodoWriteTool({ todos: createTodoStore() }).call({ todos }, context({}));
    expect(outcome.content).toContain(advice);
    expect(outcome.isError).toBeUndefined();
  });

  test.each([
    [{ todos: [{ content: " ", status: "pending", activeForm: "x" }] }],
    [{ todos: [{ content: "a", status: "done", activeForm: "x" }] }],
    [{ todos: "a" }],
  ])("%j is not a list of steps", (input) => {
    expect(createTodoWriteTool({ todos: createTodoStore() }).input?.safeParse(input).success).toBe(false);
  });
});

describe("AskUserQuestion", () => {
  const options = ["Yes", "No"].map((label) => ({ label, description: "" }));
  const question = { question: "Continue?", header: "A rather long header", options };

  test("gives the person's answers by question", async () => {
    const host: ToolHost = {
      ask: async (questions) => {
        expect(questions).toEqual([{ ...question, header: "A rather lon", multiSelect: false }]);
        return { "Continue?": "Yes" };
      },
    };
    const outcome = await askUserQuestionTool.call({ questions: [question] }, context(host));
    expect(outcome.content).toBe("The person answered:\nContinue?\n→ Yes");
    expect(outcome.data).toMatchObject({ answers: { "Continue?": "Yes" } });
  });

  test("fails clearly where there is no one to ask", async () => {
    const outcome = await askUserQuestionTool.call({ questions: [question] }, context({}));
    expect(outcome.isError).toBe(true);
    expect(outcome.content).toContain("There is no one to ask");
  });

  test("fails when the person turned away", async () => {
    const host: ToolHost = { ask: () => Promise.reject(new Error("closed")) };
    const outcome = await askUserQuestionTool.call({ questions: [question] }, context(host));
    expect(outcome).toEqual({ content: "The questions were not answered: closed.", isError: true });
  });

  test.each([
    [[]],
    [[question, question]],
    [[{ ...question, options: options.slice(1) }]],
    [[{ ...question, options: [options[0], options[0]] }]],
    [[1, 2, 3, 4, 5].map((at) => ({ ...question, question: `${at}?` }))],
  ])("%j cannot be asked", (questions) => {
    expect(askUserQuestionTool.input?.safeParse({ questions }).success).toBe(false);
  });
});
