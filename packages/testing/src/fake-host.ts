import { checks, checkTable } from "@retinue/base/foundation/check-arguments.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { HostQuestion, TodoItem, ToolHost } from "@retinue/core/tools/tool.ts";

export interface FakeHostOptions {
  /** The answer to each question by its text, or a function of it. */
  readonly answers?:
    | Readonly<Record<string, string>>
    | ((question: HostQuestion) => string | undefined)
    | undefined;
  /** Host names that may be fetched although they are private. */
  readonly privateHosts?: readonly string[] | undefined;
}

export interface FakeHost extends ToolHost {
  readonly questions: readonly HostQuestion[];
  /** The list of steps as it was last reported. */
  readonly todos: readonly TodoItem[];
}

/** A host with canned answers, which notes what it was asked. */
export function createFakeHost(options: FakeHostOptions = {}): FakeHost {
  const isAnswers = checks.either(
    "must be an object of strings or a function",
    checks.variables,
    checks.call,
  );
  checkTable("createFakeHost", { answers: isAnswers, privateHosts: checks.texts }, options);
  const { answers = {}, privateHosts = [] } = options;
  const questions: HostQuestion[] = [];
  let todos: readonly TodoItem[] = [];
  const known = typeof answers === "function" ? undefined : new Map(Object.entries(answers));
  const answer = (question: HostQuestion): string => {
    questions.push(question);
    const found = typeof answers === "function" ? answers(question) : known?.get(question.question);
    if (found !== undefined) return found;
    throw new RetinueError("unanswered-question", `The fake host has no answer to "${question.question}".`, {
      advice: "Add the question's text with its answer to `answers`.",
    });
  };
  return {
    questions,
    get todos() {
      return todos;
    },
    async ask(asked, { signal }) {
      signal.throwIfAborted();
      return Object.fromEntries(asked.map((question) => [question.question, answer(question)]));
    },
    todosChanged(changed) {
      todos = changed;
    },
    mayFetchPrivate: (host) => privateHosts.includes(host),
  };
}
