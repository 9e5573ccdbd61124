import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { QuoteSettings } from "@retinue/config/settings/read-environment.ts";
import type { BatchQuote, QuotedAgent } from "@retinue/gate/batch-quote.ts";
import { inOrder } from "@retinue/gate/grants/session-approvals.ts";
import { describeBands, describeMoney } from "../../inspection/describe-quote.ts";
import type { Authorization, CallRequest } from "../../loop/loop-ports.ts";
import type { ChildPlanned, SpawnRequest } from "../../planning/agent-request.ts";
import { bandsOnly, quoteBatch } from "../../planning/quote-agent.ts";
import { requestOfCall } from "../../tasks/create-agent-tool.ts";
import type { Tool } from "../../tools/tool.ts";
import type { AuthorizeWithHooks } from "../agent/create-authorize.ts";
import type { Capability } from "../agent/open-agent.ts";
import type { Quotes } from "./open-quotes.ts";

/** The outcome of asking about agents that are about to start. */
export type BatchAnswer =
  | {
      readonly type: "allowed";
      /** The requests as they are to be started: each with what was quoted for it. */
      readonly requests: readonly SpawnRequest[];
      /** Absent where settings configure no quotes, so that none was made. */
      readonly quote?: BatchQuote;
    }
  | { readonly type: "refused"; readonly reason: string };

/** One question for all agents that start together, where settings want it. */
export interface BatchQuestion {
  /** Asks about the Agent calls of one message together, before the first of them starts. */
  readonly capability: Capability;
  /** The request of a call with what was quoted for it. */
  readonly quoted: (request: SpawnRequest) => SpawnRequest;
  /** The same question about agents that no message of a model asks for; `what` names what starts them. */
  readonly ask: (
    requests: readonly SpawnRequest[],
    options: {
      readonly signal: AbortSignal;
      readonly what?: string;
      readonly callId?: string | undefined;
      readonly bounds?: BatchBounds | undefined;
    },
  ) => Promise<BatchAnswer>;
}

/** What is known of agents whose number is decided while they run. */
export interface BatchBounds {
  /** There may be more agents than those in the list. */
  readonly isOpen: boolean;
  readonly most: { readonly agents: number; readonly usd?: number | undefined };
}

interface BatchQuestionOptions {
  readonly quotes: Quotes;
  /** Agents that were started below every threshold: with them, the next batch may be above one. */
  readonly unasked: QuotedAgent[];
  readonly plan: (request: SpawnRequest) => Promise<ChildPlanned>;
  readonly tool: () => Tool;
}

interface Batch {
  /** The calls by their ids, each with the input that is asked about. */
  readonly calls: Map<string, CallRequest>;
  answer?: Promise<Authorization | undefined>;
  /** What of it counts as unasked. */
  counted?: readonly QuotedAgent[];
  /** The same calls with other inputs, which do not start. */
  readonly replaces?: Batch;
}

export function openBatchQuestion({ quotes, unasked, plan, tool }: BatchQuestionOptions): BatchQuestion {
  const { settings } = quotes;
  const batches = new Map<string, Batch>();
  const quotedCalls = new Map<string, QuotedAgent>();
  let askPeople: AuthorizeWithHooks | undefined;

  async function put(
    requests: readonly SpawnRequest[],
    {
      signal,
      callId,
      what,
      inputs,
      bounds,
    }: {
      readonly signal: AbortSignal;
      readonly callId: string;
      readonly what?: string | undefined;
      readonly inputs: readonly unknown[];
      readonly bounds?: BatchBounds | undefined;
    },
  ) {
    const made = await quotes.batch(requests, plan);
    const why = settings === undefined ? undefined : whyNow(made.quote, { settings, bounds, unasked });
    if (why === undefined) {
      unasked.push(...made.quote.agents);
      return { ...made, answer: undefined };
    }
    const input = { ...(what === undefined ? {} : { start: what }), agents: inputs };
    const call = { type: "tool_use", id: callId, name: tool().name, input } as const;
    const reason = `${what === undefined ? "" : `${what}: `}${describeBatch(made.quote)}; ${why}`;
    const answer = await askPeople?.(
      { call, tool: tool(), input },
      { signal, question: { reason, quote: { ...made.quote, why } } },
    );
    const whole = wholeAnswer(answer, { input, count: made.quote.agents.length });
    if (whole.type === "allowed") unasked.length = 0;
    return { ...made, answer: whole };
  }

  async function askAbout(batch: Batch, signal: AbortSignal): Promise<Authorization | undefined> {
    const calls = [...batch.calls.values()];
    const [first] = calls;
    if (first === undefined) return undefined;
    const requests = calls.map(({ call, input }) => ({ ...requestOfCall(input), callId: call.id }));
    const inputs = calls.map(({ input }) => input);
    await batch.replaces?.answer;
    for (const agent of batch.replaces?.counted ?? []) {
      const at = unasked.indexOf(agent);
      if (at !== -1) unasked.splice(at, 1);
    }
    const { quote, quoted, answer } = await put(requests, { signal, callId: first.call.id, inputs });
    batch.counted = quote.agents;
    if (answer?.type !== "denied")
      for (const [at, agent] of quoted.entries())
        if (agent !== undefined) quotedCalls.set(calls[at]?.call.id ?? "", agent);
    return answer;
  }

  /** What the first call of a batch was answered holds for all of them; another input makes it another batch. */
  function answerFor(request: CallRequest, signal: AbortSignal): Promise<Authorization | undefined> {
    const { id } = request.call;
    let batch = batches.get(id);
    const asked = batch?.calls.get(id);
    if (batch === undefined || asked === undefined || !isSame(asked.input, request.input)) {
      const calls = new Map([...(batch?.calls ?? []), [id, request]]);
      batch = batch === undefined ? { calls } : { calls, replaces: batch };
      for (const each of batch.calls.keys()) batches.set(each, batch);
    }
    batch.answer ??= askAbout(batch, signal);
    return batch.answer;
  }

  const capability: Capability = {
    attach({ ask }) {
      askPeople = ask;
    },
    ...(settings === undefined
      ? {}
      : {
          beforeCalls(calls) {
            batches.clear();
            quotedCalls.clear();
            const agents = calls.filter((request) => request.tool.name === tool().name);
            const batch: Batch = { calls: new Map(agents.map((request) => [request.call.id, request])) };
            for (const id of batch.calls.keys()) batches.set(id, batch);
          },
          beforeCall: (next) => async (request, options) => {
            const decided = await next(request, options);
            if (request.tool.name !== tool().name || decided.type !== "allowed") return decided;
            const answer = await answerFor({ ...request, input: decided.input }, options.signal);
            if (answer?.type === "denied") return answer;
            return answer === undefined ? decided : { ...decided, asked: true, approval: answer.approval };
          },
        }),
  };

  return {
    capability,
    quoted(request) {
      const agent = quotedCalls.get(request.callId ?? "");
      return agent === undefined ? request : { ...request, quote: bandsOnly(agent) };
    },
    async ask(requests, { signal, what, callId = "batch", bounds }) {
      if (settings === undefined || (requests.length === 0 && bounds?.isOpen !== true))
        return { type: "allowed", requests };
      const inputs = requests.map(inputOf);
      const { quote, quoted, answer } = await put(requests, { signal, callId, what, inputs, bounds });
      if (answer?.type === "denied") return { type: "refused", reason: answer.reason };
      const withQuotes = requests.map((request, at) => {
        const agent = quoted[at];
        return agent === undefined ? request : { ...request, quote: bandsOnly(agent) };
      });
      return { type: "allowed", requests: withQuotes, quote };
    },
  };
}

/** The same, where the agents started without a question count as well: in small pieces, many are as many. */
function whyNow(
  quote: BatchQuote,
  {
    settings,
    bounds,
    unasked,
  }: {
    readonly settings: QuoteSettings;
    readonly bounds: BatchBounds | undefined;
    readonly unasked: readonly QuotedAgent[];
  },
): string | undefined {
  const alone = whyAsked(quote, settings, bounds);
  // A workflow with a ceiling has its own reserve.
  if (alone !== undefined || bounds?.most.usd !== undefined) return alone;
  if (unasked.length === 0 || quote.agents.length === 0) return undefined;
  const why = whyAsked(quoteBatch([...unasked, ...quote.agents]), settings);
  return why && `with ${unasked.length} started before without a question, ${why}`;
}

/** Which threshold a batch is above, in words; undefined where it is above none. */
export function whyAsked(
  { agents, total, unpriced }: Pick<BatchQuote, "agents" | "total" | "unpriced">,
  { askAboveUsd, askAboveAgents }: QuoteSettings,
  bounds?: BatchBounds,
): string | undefined {
  const open = bounds?.isOpen === true ? "how many agents start is decided while they run, and " : undefined;
  const askAgents = `settings ask above ${askAboveAgents} ${askAboveAgents === 1 ? "agent" : "agents"} (quotes.askAboveAgents)`;
  if (askAboveAgents !== undefined && agents.length > askAboveAgents) return askAgents;
  if (askAboveAgents !== undefined && open !== undefined && (bounds?.most.agents ?? 0) > askAboveAgents)
    return `${open}${askAgents}`;
  if (askAboveUsd === undefined) return undefined;
  const setting = `settings ask above ${describeMoney(askAboveUsd)} (quotes.askAboveUsd)`;
  const most = bounds?.most.usd ?? Number.POSITIVE_INFINITY;
  // What reserves its money cannot take more.
  if (most <= askAboveUsd) return undefined;
  if (open !== undefined) return `${open}${setting}`;
  if (total.costUsd !== undefined && total.costUsd.high > askAboveUsd) return setting;
  // What is not known may be anything.
  return unpriced > 0 ? `the price of ${unpriced} of them is not known, and ${setting}` : undefined;
}

function describeBatch({ agents, total }: BatchQuote): string {
  const who = agents.length === 1 ? "an agent would start" : `${agents.length} agents would start`;
  return `${who}: ${describeBands(total)}`;
}

/** A yes counts for the batch as it was shown, so one that changes it is none. */
function wholeAnswer(
  answer: Authorization | undefined,
  { input, count }: { readonly input: unknown; readonly count: number },
): Authorization {
  const none = count === 1 ? "The agent was not started" : `None of these ${count} agents was started`;
  if (answer === undefined) return { type: "denied", reason: `${none}: no one can be asked yet.` };
  if (answer.type === "denied") return { ...answer, reason: `${none}. ${answer.reason}` };
  if (isSame(answer.input, input)) return answer;
  const reason = `${none}: the answer changed what was asked about, and a batch starts exactly as shown or not at all.`;
  return { type: "denied", reason, asked: true };
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(inOrder(one)) === JSON.stringify(inOrder(other));
}

/** A request as people see it: what it says, and nothing that is undefined. */
function inputOf(request: SpawnRequest): Readonly<Record<string, unknown>> {
  const { quote: _quote, callId: _callId, ...rest } = request;
  const plain: unknown = JSON.parse(JSON.stringify(rest));
  return isRecord(plain) ? plain : {};
}
