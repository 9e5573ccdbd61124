import * as z from "zod";
import type { TodoItem, Tool } from "../tool.ts";
import { builtinTool } from "./builtin-tool.ts";

/** The list of steps that each agent keeps. */
export interface TodoStore {
  read(agentId: string): readonly TodoItem[];
  write(agentId: string, todos: readonly TodoItem[]): void;
}

export function createTodoStore(): TodoStore {
  const lists = new Map<string, readonly TodoItem[]>();
  return {
    read: (agentId) => lists.get(agentId) ?? [],
    write: (agentId, todos) => void lists.set(agentId, todos),
  };
}

const input = z.object({
  todos: z
    .array(
      z.object({
        content: z.string().trim().min(1).describe("The step as an order: Run the tests"),
        status: z.enum(["pending", "in_progress", "completed"]),
        activeForm: z.string().trim().min(1).describe("The step while it is done: Running the tests"),
      }),
    )
    .max(200)
    .describe("The whole list, which takes the place of the old one."),
});

/** Keeps an agent's own list of steps, so that it and the person see what is done and what is next. */
export function createTodoWriteTool({ todos: store }: { readonly todos: TodoStore }): Tool {
  return builtinTool<z.infer<typeof input>>({
    name: "TodoWrite",
    description:
      "Writes down the steps of your work and how far each is. Use it for work of three steps or more; leave it for small things. Send the whole list each time, keep exactly one step in_progress while you work, and mark a step completed as soon as it is done and only then.",
    input,
    async call({ todos }, { agent, host }) {
      const oldTodos = store.read(agent.id);
      store.write(agent.id, todos);
      host.todosChanged?.(todos);
      const content = [summarise(todos), ...advise(todos)].join("\n");
      return { content, data: { oldTodos, newTodos: todos } };
    },
  });
}

function summarise(todos: readonly TodoItem[]): string {
  const count = (status: TodoItem["status"]) => todos.filter((todo) => todo.status === status).length;
  return `The list is kept: ${count("completed")} completed, ${count("in_progress")} in progress, ${count("pending")} pending.`;
}

function advise(todos: readonly TodoItem[]): readonly string[] {
  const active = todos.filter(({ status }) => status === "in_progress").length;
  if (active > 1) return [`${active} steps are in progress; keep it to the one you are working on.`];
  const waits = todos.some(({ status }) => status === "pending");
  return active === 0 && waits ? ["No step is in progress; mark the one you begin with."] : [];
}
