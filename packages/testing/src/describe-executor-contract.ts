import type { UserMessage } from "@retinue/core/conversation/message.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import type { Execution, Executor } from "@retinue/core/tasks/run-agent.ts";
import type { TaskControl } from "@retinue/core/tasks/task-manager.ts";
import type { TestRunner } from "./describe-model-contract.ts";
import type { Step } from "./script.ts";

export interface ExecutorSubject {
  readonly executor: Executor;
  /** A child with this task, ready to be carried out. */
  execution(prompt: string): Execution;
  /** How many children hold something; absent where that cannot be reported. */
  readonly held?: () => number;
  dispose(): Promise<void>;
}

/** Makes the executor under test with a model that answers by these steps and a tool `Echo` that gives back its text. */
export type CreateExecutor = (steps: readonly Step[]) => Promise<ExecutorSubject>;

/** The rules every Executor keeps, as tests of the runner that is passed in. */
export function describeExecutorContract(
  name: string,
  create: CreateExecutor,
  { describe, test, expect }: TestRunner,
): void {
  const withExecutor = async (steps: readonly Step[], use: (subject: ExecutorSubject) => Promise<void>) => {
    const subject = await create(steps);
    try {
      await use(subject);
      if (subject.held !== undefined) expect(subject.held()).toBe(0);
    } finally {
      await subject.dispose();
    }
  };

  describe(`${name} keeps the contract of an executor`, () => {
    describeEndings({ describe, test, expect }, withExecutor);
    describeIsolation({ describe, test, expect }, withExecutor);
  });
}

type WithExecutor = (
  steps: readonly Step[],
  use: (subject: ExecutorSubject) => Promise<void>,
) => Promise<void>;

/** How a run ends, and what it takes in on the way. */
function describeEndings({ test, expect }: TestRunner, withExecutor: WithExecutor): void {
  test("the events end with exactly one run-ended, which has the text", () =>
    withExecutor([{ calls: [{ name: "Echo", input: { text: "hi" } }] }, "Done."], async (subject) => {
      const events = await drain(subject, "Work.");
      expect(events.filter(({ type }) => type === "run-ended").length).toBe(1);
      expect(endingOf(events)).toEqual({ status: "completed", text: "Done." });
    }));

  test("a model that fails is an ending, not a throw", () =>
    withExecutor([{ failure: "unauthorized" }], async (subject) => {
      expect(endingOf(await drain(subject, "Work.")).status).toBe("failed");
    }));

  test("a stop in the middle ends it as stopped, and nothing follows", () =>
    withExecutor([{ text: "Never", failure: "stall", after: 1 }], async (subject) => {
      const controller = new AbortController();
      const events = await drain(subject, "Work.", {
        signal: controller.signal,
        watch: ({ type }) => type === "model-streamed" && controller.abort(),
      });
      expect(events.at(-1)?.type).toBe("run-ended");
      expect(endingOf(events).status).toBe("stopped");
    }));

  test("a message that arrives while it works is read between turns", () =>
    withExecutor(["First.", "Second."], async (subject) => {
      const mail: UserMessage[] = [];
      const events = await drain(subject, "Work.", {
        mail,
        watch: ({ type }) => type === "turn-started" && mail.length === 0 && mail.push(more),
      });
      const added = events.filter((event) => event.type === "user-added" && event.origin === "message");
      expect(added.length > 0).toBe(true);
    }));
}

/** What runs share, and what they leave behind. */
function describeIsolation({ test, expect }: TestRunner, withExecutor: WithExecutor): void {
  test("two at the same time do not mix", () =>
    withExecutor(
      [
        { match: "ONE", text: "One." },
        { match: "TWO", text: "Two." },
      ],
      async (subject) => {
        const [one, two] = await Promise.all([drain(subject, "ONE"), drain(subject, "TWO")]);
        expect([endingOf(one ?? []).text, endingOf(two ?? []).text]).toEqual(["One.", "Two."]);
      },
    ));

  test("events are plain data", () =>
    withExecutor([{ calls: [{ name: "Echo", input: { text: "hi" } }] }, "Done."], async (subject) => {
      const events = await drain(subject, "Work.");
      const types = JSON.parse(JSON.stringify(events)).map(({ type }: { type: string }) => type);
      expect(types).toEqual(events.map(({ type }) => type));
    }));

  test("a reader that stops has everything released", () =>
    withExecutor([{ calls: [{ name: "Echo", input: { text: "hi" } }] }, "Done."], async (subject) => {
      for await (const event of subject.executor.execute(subject.execution("Work."), lineOf([]), never)) {
        if (event.type === "turn-started") break;
      }
    }));
}

const never = new AbortController().signal;
const more: UserMessage = { role: "user", content: [{ type: "text", text: "One more thing." }] };

function lineOf(mail: UserMessage[]): TaskControl {
  return { attended: () => true, unattended: never, takeMessages: () => mail.splice(0) };
}

async function drain(
  { executor, execution }: ExecutorSubject,
  prompt: string,
  options: { signal?: AbortSignal; mail?: UserMessage[]; watch?: (event: RunEvent) => unknown } = {},
): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  let isWaiting = true;
  const mail = options.mail ?? [];
  for await (const event of executor.execute(execution(prompt), lineOf(mail), options.signal ?? never)) {
    events.push(event);
    // A message is sent once, however often its occasion comes.
    if (isWaiting && options.watch?.(event)) isWaiting = options.mail === undefined;
  }
  return events;
}

function endingOf(events: readonly RunEvent[]): { readonly status?: string; readonly text?: string } {
  const last = events.at(-1);
  return last?.type === "run-ended" ? { status: last.ending.status, text: last.ending.text } : {};
}
