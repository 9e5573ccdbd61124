import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { Shells } from "../command/shells.ts";
import * as t from "../input-type.ts";
import type { TaskSource, TaskView } from "../task-source.ts";
import { describePage, pageOf, type TextPage } from "../text-page.ts";
import type { TodoItem, Tool, ToolContext, ToolOutcome } from "../tool.ts";
import { builtinTool, failed, optionalFlag, optionalNumber, optionalText } from "./builtin-tool.ts";
import { type BashToolOptions, createBashTool } from "./create-bash-tool.ts";
import { editTool, notebookEditTool, writeTool } from "./edit-tool.ts";
import { globTool } from "./glob-tool.ts";
import { grepTool } from "./grep-tool.ts";
import { readTool } from "./read-tool.ts";
import type { ShellDirectories } from "./shell-directories.ts";
import { createWebFetchTool, type WebFetchOptions } from "./web/create-web-fetch-tool.ts";

/** What the built-in tools of a session share. */
interface BuiltinToolsOptions {
  readonly shells: Shells;
  readonly directories: ShellDirectories;
  /** Milliseconds that only ever grow; the clock of the shells too. */
  readonly now: () => number;
  readonly todos?: TodoStore;
  /** Where TaskOutput and TaskStop look besides the shells. */
  readonly taskSources?: readonly TaskSource[];
  readonly bash?: Omit<BashToolOptions, "shells" | "directories" | "now">;
  readonly webFetch?: Omit<WebFetchOptions, "now">;
}

/** All built-in tools, by name, so that a model always sees them in the same order. */
export function createBuiltinTools(options: BuiltinToolsOptions): readonly Tool[] {
  const { shells, directories, now, todos = createTodoStore() } = options;
  const sources = [shells, ...(options.taskSources ?? [])];
  return [
    askUserQuestionTool,
    createBashTool({ shells, directories, now, ...options.bash }),
    editTool,
    globTool,
    grepTool,
    notebookEditTool,
    readTool,
    createTaskOutputTool({ sources, now }),
    createTaskStopTool({ sources }),
    createTodoWriteTool({ todos }),
    createWebFetchTool({ now, ...options.webFetch }),
    writeTool,
  ];
}

const stopInput = t.object({
  task_id: optionalText("The id of the task to stop."),
  shell_id: optionalText("The old name of task_id."),
});

/** Ends a background task with all its processes; what it has written stays readable. */
export function createTaskStopTool({ sources }: Pick<TaskToolOptions, "sources">): Tool {
  return builtinTool<t.Infer<typeof stopInput>>({
    name: "TaskStop",
    description:
      "Stops a background task (a shell or an agent) with everything it has started. What it wrote stays readable with TaskOutput.",
    input: stopInput,
    async call({ task_id, shell_id }, context) {
      const asked = task_id ?? shell_id;
      if (asked === undefined) return failed("task_id is missing; give the id of the task to stop.");
      const found = lookUpTask(sources, asked, context);
      if (found.type === "unknown") return failed(found.reason);
      // It may have been asked for by its name.
      const { id } = found.task;
      const wasRunning = found.task.state === "running";
      if (wasRunning) await found.source.stop(id);
      const task = found.source.find(id) ?? found.task;
      const message = wasRunning
        ? `Task ${id} was stopped: ${task.description}`
        : `Task ${id} had ended already (${task.state}): ${task.description}`;
      const command = task.command === undefined ? {} : { command: task.command };
      return { content: message, data: { message, task_id: id, task_type: task.kind, ...command } };
    },
  });
}

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

const todoInput = t.object({
  todos: t
    .array(
      t.object({
        content: t.string().trim().min(1).describe("The step as an order: Run the tests"),
        status: t.oneOf(["pending", "in_progress", "completed"]),
        activeForm: t.string().trim().min(1).describe("The step while it is done: Running the tests"),
      }),
    )
    .max(200)
    .describe("The whole list, which takes the place of the old one."),
});

/** Keeps an agent's own list of steps, so that it and the person see what is done and what is next. */
export function createTodoWriteTool({ todos: store }: { readonly todos: TodoStore }): Tool {
  return builtinTool<t.Infer<typeof todoInput>>({
    name: "TodoWrite",
    description:
      "Writes down the steps of your work and how far each is. Use it for work of three steps or more; leave it for small things. Send the whole list each time, keep exactly one step in_progress while you work, and mark a step completed as soon as it is done and only then.",
    input: todoInput,
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

const maxHeader = 12;

const question = t.object({
  question: t.string().trim().min(1).describe("The whole question, ending in a question mark."),
  header: t.string().trim().min(1).describe(`A label of at most ${maxHeader} characters, such as Database.`),
  options: t
    .array(
      t.object({
        label: t.string().trim().min(1).describe("The choice in one to five words."),
        description: t.string().describe("What choosing it means."),
      }),
    )
    .min(2)
    .max(4)
    .describe("Choices that exclude each other unless multiSelect; the person can always answer otherwise."),
  multiSelect: optionalFlag("Whether several choices may be taken together."),
});

const questionInput = t.object({
  questions: t
    .array(question)
    .min(1)
    .max(4)
    .refine((asked) => new Set(asked.map((one) => one.question)).size === asked.length, {
      message: "Two questions have the same text; ask each once.",
    })
    .refine(
      (asked) =>
        asked.every(({ options }) => new Set(options.map(({ label }) => label)).size === options.length),
      {
        message: "Two options of a question have the same label; give each its own.",
      },
    ),
});

/** Puts questions with choices to the person, where there is one. */
export const askUserQuestionTool: Tool = builtinTool<t.Infer<typeof questionInput>>({
  name: "AskUserQuestion",
  description:
    "Asks the person to choose when the work depends on something only they can decide: unclear requirements, a choice between approaches. Put the option you recommend first and mark it (Recommended). Do not ask what you can find out yourself.",
  input: questionInput,
  async call({ questions }, { host, signal, agent, agentPath, callId }) {
    if (host.ask === undefined) {
      return failed(
        "There is no one to ask in this run. Decide for yourself, and state in your answer what you assumed.",
      );
    }
    const asked = questions.map((one) => ({
      ...one,
      header: one.header.slice(0, maxHeader),
      multiSelect: one.multiSelect ?? false,
    }));
    try {
      const answers = await host.ask(asked, { signal, agent, agentPath, callId });
      const lines = asked.map(
        ({ question: text }) =>
          `${text}\n→ ${Object.hasOwn(answers, text) ? (answers[text] ?? "") : "(no answer)"}`,
      );
      return { content: `The person answered:\n${lines.join("\n")}`, data: { questions: asked, answers } };
    } catch (error) {
      const why = signal.aborted
        ? "the run was interrupted"
        : String(error instanceof Error ? error.message : error);
      return failed(`The questions were not answered: ${why}.`);
    }
  },
});

interface TaskToolOptions {
  readonly sources: readonly TaskSource[];
  /** The clock that the tasks' own times come from. */
  readonly now: () => number;
}

const input = t.object({
  task_id: t.string().min(1).describe("The id that was given when the task was started."),
  block: optionalFlag("Wait until the task has ended; true unless you say false or give an offset."),
  timeout: optionalNumber("How long to wait at most, in milliseconds: 30000 unless given, at most 600000."),
  offset: optionalNumber("Read on from this character of a long output, as an earlier answer says."),
});

/** Reads what a background task has written, and waits for its end where asked to. */
export function createTaskOutputTool({ sources, now }: TaskToolOptions): Tool {
  return builtinTool<t.Infer<typeof input>>({
    name: "TaskOutput",
    description:
      "Reads what a background task (a shell or an agent) has written so far, and how it is doing. With `block` it waits for the end, at most `timeout` milliseconds. Use block: false for a look in between. What is too long for one answer is read on with `offset`.",
    input,
    isPending,
    async call({ task_id, offset, block = offset === undefined, timeout = 30_000 }, context) {
      const { signal } = context;
      const found = lookUpTask(sources, task_id, context);
      if (found.type === "unknown") {
        const recalled = await recallTask(sources, task_id, context);
        if (recalled === undefined) return failed(found.reason);
        return outcomeOf(recalled.task, pageOf(recalled.text, offset), { now: now(), stillRuns: "" });
      }
      const { source } = found;
      // It may have been asked for by its name.
      const { id } = found.task;
      const limitMs = Math.min(600_000, Math.max(0, timeout));
      // Also for one that has just ended: it is still being recorded, and its parent has not been notified.
      if (block) await waitForEnd(source.ended(id), { limitMs, signal });
      const task = source.find(id) ?? found.task;
      const output =
        offset === undefined ? { text: await source.output(id), offset: 0 } : await source.page(id, offset);
      const stillRuns =
        block && task.state === "running" ? `It is still running after ${limitMs} ms of waiting.` : "";
      return outcomeOf(task, output, { now: now(), stillRuns });
    },
  });
}

/** `data` as `call` gives it back. */
function isPending(data: unknown): boolean {
  return isRecord(data) && isRecord(data.task) && data.task.state === "running";
}

interface Moment {
  readonly now: number;
  readonly stillRuns: string;
}

function outcomeOf(task: TaskView, page: TextPage, moment: Moment): ToolOutcome {
  const { now, stillRuns } = moment;
  const metrics = Object.entries(task.metrics ?? {}).map(([name, value]) => `${name} ${value}`);
  // How a task is, as one line.
  const seconds = Math.max(0, Math.round(((task.endedAt ?? now) - task.startedAt) / 1_000));
  const code = task.exitCode === undefined ? "" : `, exit code ${task.exitCode}`;
  const lines = [
    `Task ${task.id} (${task.kind}): ${task.state}${code}, ${seconds} s`,
    stillRuns,
    task.note ?? "",
    task.agentId === undefined ? "" : `Agent: ${task.agentId}`,
    metrics.length === 0 ? "" : `Metrics: ${metrics.join(", ")}`,
    task.outputFile === undefined ? "" : `File: ${task.outputFile}`,
  ];
  const where = describePage(page);
  const heading = where === "" ? "Output:" : `Output (${where}):`;
  const isEmpty = page.text.trimEnd() === "" && where === "";
  const text = isEmpty ? "It has written nothing yet." : `${heading}\n${page.text}`.trimEnd();
  return {
    content: [...lines.filter((line) => line !== ""), "", text].join("\n"),
    data: { task, output: page.text },
  };
}

async function waitForEnd(
  ended: Promise<void>,
  { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const given = Promise.withResolvers<void>();
  const timer = setTimeout(given.resolve, limitMs);
  const onAbort = () => given.resolve();
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    await Promise.race([ended, given.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

type FoundTask =
  | { readonly type: "found"; readonly source: TaskSource; readonly task: TaskView }
  | { readonly type: "unknown"; readonly reason: string };

function lookUpTask(sources: readonly TaskSource[], id: string, caller: Caller): FoundTask {
  for (const source of sources) {
    const task = source.find(id);
    if (task !== undefined && isReachable(task, sources, caller)) return { type: "found", source, task };
  }
  return { type: "unknown", reason: unknownText(sources, id, caller) };
}

type Caller = Pick<ToolContext, "agent" | "agentPath">;

/** The main agent reaches every task; a subagent what it has started, and what those below it have. */
function isReachable({ owner }: TaskView, sources: readonly TaskSource[], caller: Caller): boolean {
  if (caller.agentPath.length <= 1) return true;
  const seen = new Set<string>();
  for (let above: string | undefined = owner; above !== undefined && !seen.has(above); ) {
    if (above === caller.agent.id) return true;
    seen.add(above);
    const id: string = above;
    above = sources.flatMap((source) => source.find(id) ?? [])[0]?.owner;
  }
  return false;
}

/** Those that ended long ago are asked for only here, because that takes reading files. */
async function recallTask(
  sources: readonly TaskSource[],
  id: string,
  caller: Caller,
): Promise<{ readonly task: TaskView; readonly text: string } | undefined> {
  for (const source of sources) {
    const recalled = await source.recall?.(id);
    if (recalled !== undefined && isReachable(recalled.task, sources, caller)) return recalled;
  }
  return undefined;
}

function unknownText(sources: readonly TaskSource[], id: string, caller: Caller): string {
  const reachable = sources
    .flatMap((source) => source.list())
    .filter((task) => isReachable(task, sources, caller));
  const known = reachable.slice(-maxListed);
  if (known.length === 0) return `There is no task ${id}; nothing was started in the background.`;
  const lines = known.map((task) => `- ${task.id} (${task.kind}, ${task.state}): ${task.description}`);
  return [`There is no task ${id}. These are known:`, ...lines].join("\n");
}

const maxListed = 40;
