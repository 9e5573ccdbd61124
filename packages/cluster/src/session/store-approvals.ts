import { createHash } from "node:crypto";
import { checkArgument } from "@retinue/base/foundation/check-arguments.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "@retinue/gate/approver.ts";
import type { AgentContext } from "../agent-program.ts";
import { inboxLog, type Message, toAgentRecord } from "../agent-records.ts";
import { deliver } from "../start-agent.ts";
import { isConflict, isStore, type JsonValue, type LogEntry, type Store } from "../store.ts";
import { isForOneCall, type Question, readSessionMessage, type SessionProgress } from "./session-progress.ts";

/** A call of an agent in the store that a person has to decide about. */
export interface StoreApproval {
  /** Twelve characters; the first four or more are enough where they are unique. */
  readonly id: string;
  /** `answered`: the answer is in the store, and the next worker that takes the agent uses it. */
  readonly state: "waiting" | "answered";
  /** The agent that waits, by its id in the store. */
  readonly agent: string;
  readonly question: Question;
  /** Since when it waits, in milliseconds since 1970. */
  readonly at: number;
}

/** The calls in a store that wait for a person: listed and answered from any process, while no worker runs as well. */
export interface StoreApprovals {
  /** Those that wait first, then the newest. */
  list(): Promise<readonly StoreApproval[]>;
  /** By its id or the beginning of it, or by the id of the agent that waits. */
  find(id: string): Promise<StoreApproval>;
  /** The first answer counts; a later one is refused. */
  answer(id: string, answer: ApprovalAnswer, options: { readonly by: string }): Promise<StoreApproval>;
}

export function storeApprovals(store: Store): StoreApprovals {
  checkArgument("The first argument of storeApprovals()", isStore, store);
  const list = async (): Promise<readonly StoreApproval[]> => {
    const [agents, inboxes] = await Promise.all([
      store.log.list("run/", { last: true }),
      store.log.list("in/", { last: true }),
    ]);
    const mail = new Map(inboxes.map(({ name, last }) => [name, last]));
    return agents
      .flatMap(({ name, last }) => toApprovals(name.slice("run/".length), last))
      .map((approval) =>
        isAnswer(mail.get(inboxLog(approval.agent)), approval)
          ? { ...approval, state: "answered" as const }
          : approval,
      )
      .toSorted((a, b) => b.state.localeCompare(a.state) || b.at - a.at);
  };
  const find = async (written: string): Promise<StoreApproval> => {
    const all = await list();
    const isMeant = ({ id, agent }: StoreApproval): boolean =>
      agent === written || (written.length >= 4 && (id.startsWith(written) || agent.startsWith(written)));
    const found = all.filter(({ id, agent }) => id === written || agent === written);
    const [first, ...others] = found.length > 0 ? found : all.filter(isMeant);
    if (first === undefined) {
      const message = `No question that is waiting for an answer has the id ${JSON.stringify(written)}.`;
      const advice = "`retinue approvals --store URL` lists the waiting questions.";
      throw (await findEarlier(store, written)) ?? new RetinueError("unknown-approval", message, { advice });
    }
    if (others.length === 0) return first;
    throw new RetinueError("ambiguous-approval", `Several questions begin with ${JSON.stringify(written)}.`, {
      advice: `Write more of the id: ${[first, ...others].map(({ id }) => id).join(", ")}.`,
    });
  };
  return {
    list,
    find,
    async answer(written, answer, { by }) {
      const approval = await find(written);
      await answerQuestion(store, approval, { answer, by });
      return { ...approval, state: "answered" };
    },
  };
}

/** What an agent waits for by the last record of its log. */
export function toApprovals(agent: string, last: LogEntry | undefined): readonly StoreApproval[] {
  const record = last === undefined ? undefined : toAgentRecord(last.record);
  if (last === undefined || record?.type !== "parked") return [];
  const question = questionOf(record.waitingFor);
  if (question === undefined) return [];
  return [{ id: approvalId(agent, question, last.seq), state: "waiting", agent, question, at: last.at }];
}

/** The call that an agent is parked for. */
export function questionOf(waitingFor: JsonValue | undefined): Question | undefined {
  if (!isRecord(waitingFor) || waitingFor["type"] !== "approval") return undefined;
  // Written by the worker that parked the agent.
  return waitingFor["question"] as unknown as Question;
}

/** The same call of two agents, or of one agent at two times, are two questions. */
function approvalId(agent: string, question: Question, seq: number): string {
  return createHash("sha256")
    .update(JSON.stringify([agent, question.id, seq]))
    .digest("hex")
    .slice(0, 12);
}

function isAnswer(entry: LogEntry | undefined, { id }: StoreApproval): boolean {
  return isRecord(entry?.record) && entry.record["id"] === messageId(id);
}

/** The same for all answers to one question. */
function messageId(approval: string): string {
  return `answer/${approval}`;
}

interface GivenStoreAnswer {
  readonly answer: ApprovalAnswer;
  readonly by: string;
}

/** For callers that have found the question themselves. The first answer counts; a second caller gets the first one's. */
export async function answerQuestion(
  store: Store,
  { id, agent, question }: StoreApproval,
  { answer, by }: GivenStoreAnswer,
): Promise<void> {
  // An answer is plain data.
  const body = { type: "answer", question: question.id, answer, by } as unknown as JsonValue;
  const message: Message = { id: messageId(id), body };
  while (true) {
    const inbox = await store.log.read(inboxLog(agent));
    const earlier = inbox.find(({ record }) => isRecord(record) && record["id"] === message.id);
    if (earlier !== undefined) throw alreadyAnswered(id, earlier);
    try {
      await deliver(store, agent, message, inbox.at(-1)?.seq ?? 0);
      return;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
}

/** That a question was answered before, also when its agent works again and waits for nothing. */
async function findEarlier({ log }: Store, written: string): Promise<RetinueError | undefined> {
  if (written.length < 4) return undefined;
  const inboxes = await log.list("in/", { last: true });
  for (const { last } of inboxes) {
    const id = isRecord(last?.record) ? last.record["id"] : undefined;
    if (last !== undefined && typeof id === "string" && id.startsWith(messageId(written)))
      return alreadyAnswered(id.slice(messageId("").length), last);
  }
  return undefined;
}

function alreadyAnswered(id: string, { record, at }: LogEntry): RetinueError {
  const body = isRecord(record) && isRecord(record["body"]) ? record["body"] : {};
  const by = typeof body["by"] === "string" ? body["by"] : "somebody";
  const what = isRecord(body["answer"]) && body["answer"]["type"] === "allow" ? "allowed" : "denied";
  return new RetinueError(
    "already-answered",
    `The question ${id} has been answered: it was ${what} by ${by} at ${new Date(at).toISOString()}.`,
    { advice: "Only the first answer counts." },
  );
}

/** `answered by mara: allow`, for an answer in the inbox. */
export function describeAnswer({ body }: Message): string | undefined {
  const parsed = readSessionMessage(body);
  if (parsed?.type !== "answer") return undefined;
  const by = isRecord(body) && typeof body["by"] === "string" ? ` by ${body["by"]}` : "";
  return `answered${by}: ${parsed.answer.type}`;
}

/** Answers from the log; a question without an answer is written down and ends the activation. */
export function createParkingApprover(
  context: AgentContext,
  progress: SessionProgress,
  stop: AbortController,
): { readonly approver: Approver; question(): Question | undefined } {
  const answers = new Map(progress.answers);
  let open: Question | undefined;
  const ask = async (request: ApprovalRequest): Promise<ApprovalAnswer> => {
    const { tool, input, reason, agentPath, suggestedRules, boundTo } = request;
    const names = agentPath.map(({ name }) => name);
    const text = JSON.stringify([tool, input, names, boundTo]);
    const id = createHash("sha256").update(text).digest("hex").slice(0, 16);
    // Input of a call comes from a model's JSON.
    const question: Question = { id, tool, input: input as JsonValue, reason, path: names, suggestedRules };
    const answer = answers.get(question.id);
    if (answer !== undefined) {
      await context.record([{ type: "used", question: question.id }]);
      if (isForOneCall(answer)) answers.delete(question.id);
      return answer;
    }
    if (open === undefined) {
      open = question;
      await context.record([{ type: "asked", question: question as unknown as JsonValue }]);
    }
    stop.abort(new RetinueError("parked", "The agent is waiting for a person."));
    return new Promise(() => undefined);
  };
  const approver: Approver = {
    approve(request, { signal }) {
      return new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        ask(request).then(resolve, (error) => {
          stop.abort(error);
          reject(error);
        });
      });
    },
  };
  return { approver, question: () => open };
}
