import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import {
  type Message,
  resultText,
  type ToolResultBlock,
  textOf,
  type UserMessage,
} from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { Price } from "../conversation/usage.ts";
import { withoutRepetitionNote } from "../loop/create-rounds.ts";
import type { LimitReached, LimitReason, LoopPorts, RecordedCompaction } from "../loop/loop-ports.ts";
import { continueRequest, emptyAnswerPrompt, quotaRenewed, readQuotaPause } from "../loop/run-agent-loop.ts";
import type { ModelEvent, ModelRequest, ToolSpecification } from "../models/model.ts";
import { ModelError } from "../models/model-error.ts";
import type { Tool, ToolContext, ToolOutcome } from "../tools/tool.ts";
import type { RecordedResult, RecordedRun, RecordedStep } from "./recording.ts";

export type RecordedAnswer = Extract<RecordedStep, { type: "answer" }>;

/** A recorded run that is gone through again: what the loop needs is read from it, in the order of the record. */
export interface RecordedPorts {
  readonly ports: LoopPorts;
  /** Must see each event before the next one is asked for. */
  follow(event: RunEvent): void;
  /** What was recorded and not reached. */
  left(): readonly RecordedStep[];
  /** Aborted where the record ends before the loop does. */
  readonly signal: AbortSignal;
}

export interface RecordedPortsOptions {
  readonly tools: readonly Tool[];
  readonly serverTools?: LoopPorts["serverTools"];
  readonly present?: LoopPorts["present"];
  readonly price?: Price | undefined;
  readonly modelId: string;
  /** Called with each request and the answer that was recorded at its place; undefined where there is none. */
  readonly onRequest: (request: ModelRequest, answer: RecordedAnswer | undefined) => void;
  /** Called with each request for a summary, as it would be sent now. */
  readonly onSummaryRequest?: (request: ModelRequest, step: RecordedCompaction) => void;
  /** The names of the tools that a turn had; tools that were recorded and are not among them are not offered. */
  readonly offeredAt: (answer: RecordedAnswer) => ReadonlySet<string> | undefined;
}

export function createRecordedPorts(run: RecordedRun, options: RecordedPortsOptions): RecordedPorts {
  const { steps, ending } = run;
  const end = new AbortController();
  let at = 0;
  const current = (): RecordedStep | undefined => steps[at];
  const isOver = (reason: string): boolean => at >= steps.length && ending?.reason === reason;
  const nextAnswer = (): RecordedAnswer | undefined => {
    const found = steps.findIndex((step, index) => index >= at && step.type === "answer");
    const step = steps[found];
    if (step?.type === "answer") at = found;
    return step?.type === "answer" ? step : undefined;
  };
  const ports: LoopPorts = {
    model: {
      facts: factsOf(options),
      async *stream(request): AsyncGenerator<ModelEvent> {
        // A last turn that found nothing left of the quota has no answer.
        const answer = answerAt(current());
        if (answer !== undefined && textOf(answer) === textOf(quotaRenewed))
          throw new ModelError("quota-exhausted", "The last turn was refused.");
        const step = nextAnswer();
        options.onRequest(request, step);
        if (step === undefined) throw endOfRecord(run, end);
        yield step.answer;
      },
    },
    tools: options.tools.map((tool) => ({
      ...tool,
      call: (_input, { callId }) => Promise.resolve(outcomeOf(current(), callId)),
    })),
    serverTools: options.serverTools,
    present: options.present,
    isOffered: offeredBy(options, () => peekAnswer(steps, at)),
    authorize: async ({ call, input }) => {
      const known = resultFor(current(), call.id);
      if (known?.denied === undefined) return { type: "allowed", input };
      return { type: "denied", reason: textOfResult(known.block), asked: known.asked };
    },
    // Recorded results need nothing of it but the id of the call.
    toolContext: (callId, own) => ({ callId, ...own }) as ToolContext,
    takeMessages: () => mailAt(steps, at),
    beforeEnd: async () => answerAt(current()),
    handsInValue: () => {
      const answer = answerAt(current());
      return answer === undefined ? ending?.reason !== "no_result" : !sameMessage(answer, emptyAnswerPrompt);
    },
    isFinished: () => isOver("output_given"),
    isStopped: () => isOver("stopped_by_person"),
    compaction: recordedCompaction(current, options),
    quota: {
      closing: () => {
        const answer = answerAt(current());
        return answer === undefined ? undefined : readQuotaPause(answer);
      },
      mayBegin: true,
      lastTurn: () => ({ [Symbol.dispose]: () => undefined }),
      wait: () => Promise.resolve(),
    },
    limits: {
      takeCalls: (count) => takeRecordedCalls(current(), count, run),
      shortened: () => undefined,
      ...maxRepeats(run),
    },
    now: () => 0,
  };
  return {
    ports,
    signal: end.signal,
    left: () => steps.slice(at),
    follow(event) {
      const step = current();
      if (step !== undefined && isRecordOf(event, step)) at += 1;
    },
  };
}

function factsOf({ modelId, serverTools, price }: RecordedPortsOptions): LoopPorts["model"]["facts"] {
  return {
    id: modelId,
    provider: "recorded",
    contextWindow: Number.MAX_SAFE_INTEGER,
    maxOutputTokens: Number.MAX_SAFE_INTEGER,
    supportsServerTools: serverTools !== undefined,
    price,
  };
}

function recordedCompaction(
  current: () => RecordedStep | undefined,
  { onSummaryRequest }: RecordedPortsOptions,
): NonNullable<LoopPorts["compaction"]> {
  return {
    onSummaryRequest,
    recorded: () => {
      const step = current();
      return step?.type === "compaction" ? step : undefined;
    },
    after: async () => {
      const answer = answerAt(current());
      return answer === undefined || sameMessage(answer, continueRequest) ? undefined : answer;
    },
  };
}

/** Whether an event is what a step has recorded, so that the next step is due. */
function isRecordOf(event: RunEvent, step: RecordedStep): boolean {
  if (event.type === "assistant-answered") return step.type === "answer";
  if (event.type === "context-compacted") return step.type === "compaction";
  if (event.type !== "user-added" || event.origin === "prompt") return false;
  return event.origin === "tool-results" ? step.type === "results" : step.type === "message";
}

/** Where the record ends: as it ended then, or because nothing more is known. */
function endOfRecord({ ending }: RecordedRun, end: AbortController): RetinueError {
  const isKnown = ending !== undefined && ending.status !== "completed";
  const reason = new RetinueError(
    isKnown ? ending.reason : "end-of-recording",
    ending?.error ?? "The recording has no further answer.",
  );
  if (!isKnown || ending.status === "stopped") end.abort(reason);
  return reason;
}

function peekAnswer(steps: readonly RecordedStep[], from: number): RecordedAnswer | undefined {
  const step = steps.find((candidate, index) => index >= from && candidate.type === "answer");
  return step?.type === "answer" ? step : undefined;
}

function offeredBy(
  { tools, offeredAt }: RecordedPortsOptions,
  peek: () => RecordedAnswer | undefined,
): NonNullable<LoopPorts["isOffered"]> {
  let first: ReadonlySet<string> | undefined;
  const all = new Set(tools.map(({ name }) => name));
  return ({ name }) => {
    const next = peek();
    const offered = next === undefined ? undefined : offeredAt(next);
    first ??= offered;
    return offered === undefined || offered.has(name) || first?.has(name) !== true || !all.has(name);
  };
}

function mailAt(steps: readonly RecordedStep[], at: number): readonly UserMessage[] {
  const mail: UserMessage[] = [];
  for (const step of steps.slice(at)) {
    if (step.type !== "message" || step.kind !== "mail") break;
    mail.push(step.message);
  }
  return mail;
}

function answerAt(step: RecordedStep | undefined): UserMessage | undefined {
  return step?.type === "message" && step.kind === "said-by-loop" ? step.message : undefined;
}

function resultFor(step: RecordedStep | undefined, callId: string): RecordedResult | undefined {
  if (step?.type !== "results") return undefined;
  return step.results.find(({ block }) => block.tool_use_id === callId);
}

function outcomeOf(step: RecordedStep | undefined, callId: string): ToolOutcome {
  const known = resultFor(step, callId);
  if (known === undefined) throw new RetinueError("not-recorded", "No result of this call was recorded.");
  const { content, is_error } = withoutRepetitionNote(known.block);
  return {
    content,
    ...(is_error === true ? { isError: true } : {}),
    data: known.data,
  };
}

const notRun = /^This call was not run\. (.+)$/s;

/** Calls that a limit left nothing for are recorded with the sentence about that limit. */
function takeRecordedCalls(
  step: RecordedStep | undefined,
  count: number,
  { ending }: RecordedRun,
): { readonly granted: number; readonly limit?: LimitReached } {
  if (step?.type !== "results") return { granted: count };
  const errors = step.results.flatMap(({ block }) => notRun.exec(textOfResult(block))?.[1] ?? []);
  const [error] = errors;
  if (error === undefined) return { granted: count };
  // The reason is one of those that a loop gives: a loop has written it down.
  return { granted: count - errors.length, limit: { reason: ending?.reason as LimitReason, error } };
}

function maxRepeats({ plan }: RecordedRun): { readonly maxRepeats?: number } {
  const limits = plan?.limits as { readonly repeatedCalls?: { readonly value?: unknown } } | undefined;
  const value = limits?.repeatedCalls?.value;
  return typeof value === "number" ? { maxRepeats: value } : {};
}

export function textOfResult({ content }: ToolResultBlock): string {
  return resultText(content);
}

function sameMessage(a: Message, b: Message): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** A tool that is known only as a model saw it. */
export function toolFromRecord({ name, description, inputSchema, loading }: ToolSpecification): Tool {
  const facts = toolFacts.get(name);
  const otherOrigin = name.startsWith("mcp__") ? "mcp" : "program";
  return {
    name,
    description,
    inputSchema,
    effect: facts?.effect ?? "execute",
    origin: facts === undefined ? otherOrigin : "builtin",
    ...(loading === "searches" ? { findsTools: true } : {}),
    isConcurrencySafe: () => true,
    repeats: facts?.repeats,
    call: () =>
      Promise.reject(new RetinueError("not-recorded", "Only recorded results of this tool are available.")),
  };
}
