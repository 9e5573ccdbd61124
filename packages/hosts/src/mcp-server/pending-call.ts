import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentTree } from "@retinue/core/kernel/agent-tree.ts";
import type { FormQuestion, FormReply } from "./form-question.ts";

type SpawnOutcome = Awaited<ReturnType<AgentTree["spawn"]>>;

/** The agents of one session, as far as calls look at them. */
export type HubAgents = Pick<AgentTree, "get" | "list" | "onEvent">;

/** A question that is put to the client and not answered yet. */
export interface OpenQuestion {
  readonly id: string;
  readonly form: FormQuestion<unknown>;
  reply(reply: FormReply): void;
}

export type PendingCallEvent =
  | { readonly type: "ended"; readonly outcome: SpawnOutcome }
  | { readonly type: "question"; readonly question: OpenQuestion };

/** One agent that a client's call has started, over all the questions that come up before it ends. */
export interface PendingCall {
  /** Not guessable: a client that resumes the call in another request names it. */
  readonly id: string;
  /** The tool that was called. */
  readonly tool: string;
  /** Where the agent runs. */
  readonly agents: HubAgents;
  /** Whether the client can be asked at all. */
  readonly asks: boolean;
  /** Whether the client takes one more question in this call. */
  mayAsk(): boolean;
  ask<Answer>(form: FormQuestion<Answer>, signal: AbortSignal): Promise<Answer>;
  /** The first question that is open; undefined when there is none. */
  question(): OpenQuestion | undefined;
  /** What the client must get next: a question, or the end. */
  next(): Promise<PendingCallEvent>;
  /** No client listens for now; when none comes back in time, the agent is stopped. */
  leave(): void;
  /** Stops the agent unless it was moved to the background, and resolves when its call is over. */
  stop(): Promise<void>;
}

export interface PendingCallOptions {
  readonly id: string;
  readonly tool: string;
  readonly agents: HubAgents;
  /** How many questions the client takes during one call; 0 for one that cannot be asked. */
  readonly maxQuestions: number;
  readonly run: (signal: AbortSignal) => Promise<SpawnOutcome>;
  /** Called once, when no client will ask for this call any more. */
  readonly onOver: () => void;
  /** How long a question may stay unclaimed between two requests. */
  readonly claimMs: number;
}

export function createPendingCall(options: PendingCallOptions): PendingCall {
  const { id, tool, agents, maxQuestions, run, onOver, claimMs } = options;
  const controller = new AbortController();
  let outcome: SpawnOutcome | undefined;
  let wakeup = Promise.withResolvers<void>();
  let claim: NodeJS.Timeout | undefined;
  const notify = (): void => {
    wakeup.resolve();
    wakeup = Promise.withResolvers();
  };
  const questions = createQuestions(notify);

  // Begun a moment later, when the caller can find this call by its id.
  const over = Promise.resolve()
    .then(() => run(controller.signal))
    .catch((error: unknown): SpawnOutcome => ({ type: "refused", reason: describeError(error) }))
    .then((value) => {
      outcome = value;
      notify();
    });

  async function stop(): Promise<void> {
    controller.abort(new RetinueError("client-left", "The client no longer waits for the agent."));
    for (const question of questions.open()) question.reply({ action: "unanswered" });
    await over;
  }

  return {
    id,
    tool,
    agents,
    asks: maxQuestions > 0,
    mayAsk: () => questions.asked() < maxQuestions && !controller.signal.aborted,
    ask: questions.ask,
    question: () => questions.open()[0],
    async next() {
      clearTimeout(claim);
      while (true) {
        if (outcome !== undefined) {
          onOver();
          return { type: "ended", outcome };
        }
        const [question] = questions.open();
        if (question !== undefined) return { type: "question", question };
        await wakeup.promise;
      }
    },
    leave() {
      clearTimeout(claim);
      claim = setTimeout(() => void stop().then(onOver), claimMs).unref();
    },
    stop,
  };
}

interface Questions {
  readonly ask: PendingCall["ask"];
  /** Those that are not answered yet, oldest first. */
  open(): readonly OpenQuestion[];
  /** How many there have been. */
  asked(): number;
}

/** The questions of one call; `onAsked` is called for each new one. */
function createQuestions(onAsked: () => void): Questions {
  const open: OpenQuestion[] = [];
  let asked = 0;
  return {
    open: () => [...open],
    asked: () => asked,
    ask<Answer>(form: FormQuestion<Answer>, signal: AbortSignal): Promise<Answer> {
      asked += 1;
      const answered = Promise.withResolvers<Answer>();
      const leave = (): void => {
        const at = open.indexOf(question);
        if (at !== -1) open.splice(at, 1);
        signal.removeEventListener("abort", abandon);
      };
      const abandon = (): void => {
        leave();
        answered.reject(signal.reason);
      };
      const question: OpenQuestion = {
        id: `question-${asked}`,
        form,
        reply(reply) {
          leave();
          answered.resolve(form.read(reply));
        },
      };
      if (signal.aborted) return Promise.reject(signal.reason);
      signal.addEventListener("abort", abandon, { once: true });
      open.push(question);
      onAsked();
      return answered.promise;
    },
  };
}

function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
