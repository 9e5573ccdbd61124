// @io

import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { stoppedEnding } from "@retinue/core/kernel/run-handle.ts";
import type { ApprovalAnswer, ApprovalRequest } from "@retinue/gate/approver.ts";
import { agentLog, toAgentRecord } from "./agent-records.ts";
import { runEndingOf, type SessionOpened } from "./session/session-work.ts";
import { answerQuestion, type StoreApproval, toApprovals } from "./session/store-approvals.ts";
import { describeDeadLetter, watchAgent } from "./start-agent.ts";
import { isStore, type JsonValue, type LogEntry, type Store } from "./store.ts";

export interface FollowOptions {
  /** Starts the session or sends it a prompt; gives the number of the record after which the run's own records come. */
  readonly begin: () => Promise<number>;
  readonly signal: AbortSignal;
  /** Answers calls that wait for a person; without it the session waits for an answer from elsewhere. */
  readonly approve?: ((request: ApprovalRequest) => Promise<ApprovalAnswer>) | undefined;
  /** Receives what a worker reports about the session that it has opened, before its events. */
  readonly onOpened?: ((opened: SessionOpened) => void) | undefined;
  /** Is notified once of each call that waits for a person. */
  readonly onParked?: ((approval: StoreApproval) => void) | undefined;
}

/** How often the log is read when no event arrives: the bus may lose some. */
const rereadMs = 1_000;
/** How long events that were published before the end may take to arrive after it was read. */
const lateMs = 200;

const followShape = checks.shape(
  {
    begin: checks.call,
    signal: checks.signal,
    approve: checks.call,
    onParked: checks.call,
    onOpened: checks.call,
  },
  ["begin", "signal"],
);

/** The events of a session while it runs, and its end from the log, which nothing can lose. */
export async function* followSession(
  store: Store,
  sessionId: string,
  options: FollowOptions,
): AsyncGenerator<RunEvent> {
  checkArgument("The first argument of followSession()", isStore, store);
  checkArgument("The second argument of followSession()", checks.filled, sessionId);
  checkArgument("The third argument of followSession()", followShape, options);
  const { begin, signal, approve, onParked, onOpened } = options;
  const received: RunEvent[] = [];
  let wake: () => void = () => undefined;
  let announced: JsonValue | undefined;
  const subscriptions = [
    await watchAgent(store, sessionId, (event) => {
      // Workers publish the events of their runs, and what they have opened.
      const type = isRecord(event) ? event["type"] : undefined;
      if (type === "session-opened") onOpened?.(event as unknown as SessionOpened);
      else if (type !== undefined && type !== "run-ended") received.push(event as unknown as RunEvent);
      wake();
    }),
    await store.bus.subscribe(agentLog(sessionId), (event) => {
      announced = event;
      wake();
    }),
  ];
  const onAbort = (): void => wake();
  signal.addEventListener("abort", onAbort, { once: true });
  const answer = createAnswering(store, sessionId, { approve, onParked });
  try {
    const from = await begin();
    while (true) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const [last] = received.length > 0 ? [] : await store.log.read(agentLog(sessionId), -1);
      yield* received.splice(0);
      signal.throwIfAborted();
      const record = last === undefined || last.seq <= from ? undefined : toAgentRecord(last.record);
      if (last !== undefined && record?.type === "dead-letter") {
        yield* received.splice(0);
        const failed = {
          status: "failed",
          error: describeDeadLetter(record),
          advice: revivingAdvice,
        } as const;
        yield { type: "run-ended", ending: { ...stoppedEnding("dead-letter"), ...failed } };
        return;
      }
      if (last !== undefined && record?.type === "ended") {
        // The end is published after everything else, so what came before it has been received by then.
        const deadline = performance.now() + lateMs;
        while (announced !== last.seq && announced !== "ended" && performance.now() < deadline) {
          const next = new Promise<void>((resolve) => {
            wake = resolve;
          });
          await Promise.race([next, pause(lateMs / 4)]);
        }
        yield* received.splice(0);
        yield { type: "run-ended", ending: runEndingOf(record.ending) };
        return;
      }
      if (last !== undefined && record?.type === "parked") await answer(last);
      if (last !== undefined) await Promise.race([woken, pause(rereadMs)]);
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    for (const subscription of subscriptions) subscription.close();
  }
}

/** Asks about each question once. */
function createAnswering(
  store: Store,
  agent: string,
  { approve, onParked }: Pick<FollowOptions, "approve" | "onParked">,
): (parked: LogEntry) => Promise<void> {
  const asked = new Set<number>();
  return async (parked) => {
    const [approval] = toApprovals(agent, parked);
    if (approval === undefined || asked.has(parked.seq)) return;
    asked.add(parked.seq);
    onParked?.(approval);
    if (approve === undefined) return;
    const { id, tool, input, reason, path, suggestedRules = [] } = approval.question;
    const answer = await approve({
      sessionId: agent,
      agentId: path.length > 1 ? approval.agent : "main",
      agentPath: path.map((name) => ({ id: name, name })),
      callId: id,
      tool,
      // Input of a call comes from a model's JSON.
      input: input as Readonly<Record<string, unknown>>,
      reason,
      suggestedRules,
    });
    try {
      await answerQuestion(store, approval, { answer, by: "program" });
    } catch (error) {
      // Another answer was first and counts.
      if (!isRetinueError(error) || error.code !== "already-answered") throw error;
    }
  };
}

const revivingAdvice = "Fix the cause, then give it to the workers again: retinue tasks retry ID --store URL";

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds).unref();
  });
}
