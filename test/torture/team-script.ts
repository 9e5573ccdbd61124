import type { Message, ToolResultBlock } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { ScriptedCall, StepAnswer } from "@retinue/testing/script.ts";
import { resultsOf } from "./torture-script.ts";

export interface TeamSize {
  readonly tasks: number;
  readonly members: number;
  /** How many of the tasks begin unblocked; each later one waits for two before it. */
  readonly width: number;
}

export const fullTeam: TeamSize = { tasks: 40, members: 4, width: 4 };

/** The tasks that a task waits for, by their numbers. */
export function blockersOf(task: number, { width }: TeamSize): readonly number[] {
  return task <= width ? [] : [task - width, task - width + 1];
}

/**
 * The model of a lead and its members. It remembers nothing: what comes next follows from the board and from the results in the
 * request, so that one that was killed continues where its transcript ends. `mark` is different in each answer.
 */
export function answerTeam(request: ModelRequest, mark: string, size: TeamSize = fullTeam): StepAnswer {
  const member = /You are "(m\d+)", a teammate/.exec(request.system.join("\n"))?.[1];
  return member === undefined ? answerLead(request, mark, size) : answerMember(member, request, mark);
}

interface Line {
  readonly id: string;
  readonly status: string;
  /** What the subject says. */
  readonly task: number;
  readonly owner: string | undefined;
  readonly isBlocked: boolean;
}

function answerLead({ messages }: ModelRequest, mark: string, size: TeamSize): StepAnswer {
  const board = boardIn(messages);
  if (board === undefined) return list(mark);
  const ids = new Map(board.map(({ task, id }) => [task, id]));
  const numbers = Array.from({ length: size.tasks }, (_, index) => index + 1);
  const creatable = numbers.filter(
    (task) => !ids.has(task) && blockersOf(task, size).every((other) => ids.has(other)),
  );
  if (creatable.length > 0)
    return {
      calls: creatable.map((task) => ({
        id: `call-create-${task}-${mark}`,
        name: "TaskCreate",
        input: {
          subject: `task ${task}`,
          description: "d",
          blockedBy: blockersOf(task, size).map((other) => ids.get(other)),
        },
      })),
    };
  const names = Array.from({ length: size.members }, (_, index) => `m${index}`);
  const missing = names.filter((name) => !isStarted(name, messages));
  if (missing.length > 0) return { calls: missing.map((name) => startMember(name, mark)) };
  const ended = names.filter((name) => hasEnded(name, messages));
  if (ended.length > 0)
    return { calls: ended.map((name) => message("revive", name, { to: name, mark, text: "Continue." })) };
  const done = board.filter(({ status }) => status === "completed").length;
  const note = Math.floor((done * 4) / size.tasks);
  if (note > 0 && !succeeded(`call-note-${note}-`, messages))
    return { calls: [message("note", String(note), { to: "*", mark, text: `${done} tasks are done.` })] };
  return { text: done === size.tasks ? "ALL DONE" : `WAITING (${mark})` };
}

function answerMember(name: string, { messages }: ModelRequest, mark: string): StepAnswer {
  const done = lastResult("call-done-", messages);
  if (done !== undefined) {
    const id = partOf(done.tool_use_id);
    return { calls: [message("report", id, { to: "team-lead", mark, text: `${name} completed ${id}.` })] };
  }
  const worked = lastResult("call-work-", messages);
  if (worked !== undefined)
    return { calls: [update("done", partOf(worked.tool_use_id), { mark, status: "completed" })] };
  const board = boardIn(messages);
  if (board === undefined) return list(mark);
  const own = board.find(({ owner, status }) => owner === name && status === "in_progress");
  if (own !== undefined)
    return {
      calls: [
        {
          id: `call-work-${own.id}-${mark}`,
          name: "Bash",
          input: { command: `echo ${own.id} ${name} >> work.txt; sleep 0.03` },
        },
      ],
    };
  const free = board.filter(
    ({ status, owner, isBlocked }) => status === "pending" && owner === undefined && !isBlocked,
  );
  const next = free[Number(name.slice(1)) % Math.max(1, free.length)];
  if (next === undefined) return { text: `Nothing to do. (${mark})` };
  return { calls: [update("claim", next.id, { mark, status: "in_progress" })] };
}

function list(mark: string): StepAnswer {
  return { calls: [{ id: `call-list-0-${mark}`, name: "TaskList", input: {} }] };
}

function startMember(name: string, mark: string): ScriptedCall {
  return {
    id: `call-start-${name}-${mark}`,
    name: "Agent",
    input: { description: name, prompt: "Work on the board.", name },
  };
}

function update(
  what: string,
  taskId: string,
  { mark, status }: { readonly mark: string; readonly status: string },
): ScriptedCall {
  return { id: `call-${what}-${taskId}-${mark}`, name: "TaskUpdate", input: { taskId, status } };
}

/** Every message names its call, so that each is different from all others. */
function message(
  what: string,
  about: string,
  { to, mark, text }: { readonly to: string; readonly mark: string; readonly text: string },
): ScriptedCall {
  const id = `call-${what}-${about}-${mark}`;
  return { id, name: "SendMessage", input: { to, message: `${text} [${id}]` } };
}

function partOf(callId: string): string {
  return callId.split("-")[2] ?? "";
}

/** The board, where the last message has it. */
function boardIn(messages: readonly Message[]): readonly Line[] | undefined {
  const result = lastResult("call-list-", messages);
  if (result === undefined) return undefined;
  return [...textOf(result).matchAll(/#(\d+) \[(\w+)\] task (\d+)(?: \((m\d+)\))?( \[blocked by)?/g)].map(
    ([, id = "", status = "", task, owner, blocked]) => ({
      id,
      status,
      task: Number(task),
      owner,
      isBlocked: blocked !== undefined,
    }),
  );
}

/** The result of such a call in the last message, where it is no error. */
function lastResult(prefix: string, messages: readonly Message[]): ToolResultBlock | undefined {
  return resultsOf(messages.slice(-1)).find(
    ({ tool_use_id, is_error }) => tool_use_id.startsWith(prefix) && is_error !== true,
  );
}

export function textOf({ content }: ToolResultBlock): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}

function succeeded(prefix: string, messages: readonly Message[]): boolean {
  return resultsOf(messages).some(
    ({ tool_use_id, is_error }) => tool_use_id.startsWith(prefix) && is_error !== true,
  );
}

/** It was started, or is a member from before the lead was killed. */
function isStarted(name: string, messages: readonly Message[]): boolean {
  return resultsOf(messages).some(
    (result) =>
      result.tool_use_id.startsWith(`call-start-${name}-`) &&
      (result.is_error !== true || textOf(result).includes("has a member")),
  );
}

/** Its end was reported, and it was not written to since. */
function hasEnded(name: string, messages: readonly Message[]): boolean {
  const pendingMessages = messages.map((one) => JSON.stringify(one.content).includes(`${name} has ended`));
  const since = pendingMessages.lastIndexOf(true);
  return since !== -1 && !succeeded(`call-revive-${name}-`, messages.slice(since + 1));
}
