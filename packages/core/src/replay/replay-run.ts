import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import type { Message, UserMessage } from "../conversation/message.ts";
import type { RequestRecord, RunEnding } from "../conversation/run-event.ts";
import { costOf, type Price } from "../conversation/usage.ts";
import { digestRequest } from "../journal/create-request-recorder.ts";
import type { LoopInput, LoopPorts, RecordedCompaction } from "../loop/loop-ports.ts";
import { runAgentLoop } from "../loop/run-agent-loop.ts";
import { readForSummary, withSummaryQuestion } from "../loop/summarize-by-rule.ts";
import type { ModelRequest, ServerTool } from "../models/model.ts";
import { createToolSearch } from "../tools/create-tool-search.ts";
import type { Tool } from "../tools/tool.ts";
import { type BareDifference, compareRequests, type Difference } from "./difference.ts";
import { createRecordedPorts, type RecordedAnswer, toolFromRecord } from "./recorded-ports.ts";
import {
  mainAgent,
  type RecordedAgent,
  type RecordedRun,
  type Recording,
  systemOf,
  toolsOf,
} from "./recording.ts";

/** What an agent would be given now; whatever is absent is as it was recorded. */
export interface AgentNow {
  readonly system?: readonly string[];
  /** Built-in tools and tools of the program; those of servers are as they were recorded. */
  readonly tools?: readonly Tool[];
  readonly effort?: string | number | undefined;
  readonly reminder?: string | undefined;
  readonly maxTurns?: number | undefined;
  readonly priceOf?: (model: string) => Price | undefined;
}

export interface ReplayedRequest {
  readonly request: ModelRequest;
  /** Absent where nothing was recorded to compare it with. */
  readonly isSame?: boolean;
}

export interface ReplayedRun {
  readonly requests: readonly ReplayedRequest[];
  readonly differences: readonly Difference[];
  readonly costUsd: { readonly recorded: number; readonly now: number };
}

export interface ReplayRunInput {
  readonly recording: Pick<Recording, "parts">;
  readonly agent: RecordedAgent;
  readonly run: RecordedRun;
  /** Answers of the agent's earlier runs, and of those the ones to the same prompt. */
  readonly turnsBefore: { readonly all: number; readonly ofPrompt: number };
  readonly now: AgentNow;
}

/** Drives the loop through a recorded run without a model, and compares each request with the recorded one. */
export async function replayRun(input: ReplayRunInput): Promise<ReplayedRun> {
  const { agent, run, turnsBefore } = input;
  const requests: ReplayedRequest[] = [];
  const differences: Difference[] = [];
  let turn = turnsBefore.all;
  let cost = { recorded: 0, now: 0 };
  const report = (difference: BareDifference, message: string, at?: number): void =>
    void differences.push({
      ...difference,
      agentId: agent.id,
      agent: agent.name,
      message,
      ...(at === undefined ? {} : { turn: at }),
    });
  const played = createRecordedPorts(run, {
    ...toolsNow(input),
    modelId: firstAnswer(run)?.answer.model ?? "",
    price: undefined,
    offeredAt: ({ request }) => namesOf(input, request),
    onSummaryRequest(request, step) {
      const isSame = digestRequest(request).digest === step.asked?.request.digest;
      requests.push({ request, isSame });
      const before = isSame ? undefined : summaryRequestBefore(input.recording, run, step);
      if (before === undefined) return;
      for (const found of compareRequests(before, request))
        report({ ...found, title: `${found.title}, when a summary was requested` }, run.uuid, turn);
    },
    onRequest(request, answer) {
      turn += 1;
      const sent = { ...request, messages: [...request.messages] };
      if (answer === undefined) return takeUnrecorded(sent);
      const recorded = answer.request;
      const isSame = recorded === undefined ? undefined : digestRequest(sent).digest === recorded.digest;
      requests.push({ request: sent, isSame });
      cost = addCost(cost, answer, input.now);
      if (isSame === true) return;
      const before = requestBefore(input.recording, run, answer);
      if (before !== undefined)
        for (const found of compareRequests(before, sent)) report(found, answer.uuid, turn);
    },
  });
  function takeUnrecorded(request: ModelRequest): void {
    if (run.ending?.status !== "completed") return;
    requests.push({ request, isSame: false });
    const title = "it requests one more answer than was recorded";
    report({ kind: "turns", title, lines: [] }, run.uuid, turn);
  }
  let ending: RunEnding | undefined;
  for await (const event of runAgentLoop(loopInput(input), played.ports, played.signal)) {
    played.follow(event);
    if (event.type === "run-ended") ending = event.ending;
  }
  const unreached = played.left().filter(({ type }) => type === "answer").length;
  if (unreached > 0) report(endedEarly(unreached, ending), run.uuid, turn);
  else for (const found of compareEndings(run.ending, ending)) report(found, run.uuid, turn);
  return { requests, differences, costUsd: cost };
}

function endedEarly(unreached: number, ending: RunEnding | undefined): BareDifference {
  const how = ending?.error ?? ending?.reason ?? "no reason";
  return { kind: "turns", title: `it ends ${unreached} answers earlier than recorded`, lines: [`+ ${how}`] };
}

function compareEndings(
  before: RecordedRun["ending"],
  after: RunEnding | undefined,
): readonly BareDifference[] {
  // A run that was cut off, or continues in the next one, says nothing of its end.
  if (before === undefined || after === undefined || before.reason === "max_structured_output_retries")
    return [];
  const old = `${before.status} (${before.reason})`;
  const now = `${after.status} (${after.reason})`;
  if (old === now || before.status !== "completed") return [];
  return [{ kind: "ending", title: "how the run ends", lines: [`- ${old}`, `+ ${now}`] }];
}

function loopInput({ agent, run, turnsBefore, now, recording }: ReplayRunInput): LoopInput {
  const { plan } = run;
  const isChild = agent.id !== mainAgent;
  const request = firstAnswer(run)?.request;
  const recorded = request === undefined ? undefined : systemOf(recording, request);
  const turns = now.maxTurns ?? decided(plan?.maxTurns);
  const reminder = "reminder" in now ? now.reminder : textIn(plan?.reminder);
  const effort = "effort" in now ? now.effort : decided(plan?.effort);
  const maxTokens = request?.options?.maxTokens;
  return {
    system: now.system ?? recorded ?? [],
    history: run.history,
    prompt: withoutReminder(run.prompt, textIn(plan?.reminder)),
    maxTurns: (typeof turns === "number" ? turns : Number.POSITIVE_INFINITY) - turnsBefore.ofPrompt,
    ...(isChild ? { lastTurn: true, askWhenSilent: true } : {}),
    reminder,
    ...(typeof effort === "number" || typeof effort === "string" ? { effort } : {}),
    ...(typeof maxTokens === "number" ? { maxTokens } : {}),
  };
}

/** The loop adds the reminder again. */
function withoutReminder(prompt: UserMessage, reminder: string | undefined): UserMessage {
  if (reminder === undefined || typeof prompt.content === "string") return prompt;
  const last = prompt.content.at(-1);
  const isReminder =
    last?.type === "text" && last.text === `<system-reminder>\n${reminder}\n</system-reminder>`;
  return isReminder ? { role: "user", content: prompt.content.slice(0, -1) } : prompt;
}

/** The tools that a search has found, as they were recorded. */
function foundIn(recording: ReplayRunInput["recording"], { steps }: RecordedRun): readonly Tool[] {
  const specifications = steps.flatMap((step) =>
    step.type === "answer" && step.request !== undefined ? (toolsOf(recording, step.request) ?? []) : [],
  );
  const found = new Map(
    specifications.flatMap((each) => (each.loading === "found" ? [[each.name, each] as const] : [])),
  );
  return [...found.values()].map(toolFromRecord);
}

/** Tools in the order of the record: what is known now in place of what was recorded, and new ones behind. */
function toolsNow({ recording, run, now }: ReplayRunInput): {
  readonly tools: readonly Tool[];
  readonly serverTools?: readonly ServerTool[];
  readonly present?: LoopPorts["present"];
} {
  const request = firstAnswer(run)?.request;
  const first = request === undefined ? [] : (toolsOf(recording, request) ?? []);
  const found = foundIn(recording, run);
  const recorded = first.filter(({ loading }) => loading !== "found");
  const known = new Map((now.tools ?? []).map((tool) => [tool.name, tool]));
  const kept = recorded.flatMap((specification) => {
    const tool = known.get(specification.name);
    known.delete(specification.name);
    if (tool !== undefined) return [tool];
    const isServers = specification.loading === "searches" || toolFacts.get(specification.name) === undefined;
    return now.tools === undefined || isServers ? [toolFromRecord(specification)] : [];
  });
  const serverTools = request?.options?.serverTools;
  return {
    tools: [...kept, ...known.values(), ...found],
    ...(found.length === 0 ? {} : { present: createToolSearch(found).present }),
    // As the loop has written it.
    ...(Array.isArray(serverTools) ? { serverTools: serverTools as readonly ServerTool[] } : {}),
  };
}

function namesOf(
  { recording }: ReplayRunInput,
  request: RequestRecord | undefined,
): ReadonlySet<string> | undefined {
  const tools = request === undefined ? undefined : toolsOf(recording, request);
  return tools === undefined ? undefined : new Set(tools.map(({ name }) => name));
}

/** A request as it was, put together from the record; undefined where not all of it was kept. */
export function requestBefore(
  recording: Pick<Recording, "parts">,
  run: RecordedRun,
  answer: RecordedAnswer,
): ModelRequest | undefined {
  const { request } = answer;
  const system = request === undefined ? undefined : systemOf(recording, request);
  const tools = request === undefined ? undefined : toolsOf(recording, request);
  if (system === undefined || tools === undefined) return undefined;
  return { system, tools, messages: messagesBefore(run, answer), ...request?.options };
}

/** A request for a summary as it was. */
function summaryRequestBefore(
  recording: Pick<Recording, "parts">,
  run: RecordedRun,
  compaction: RecordedCompaction,
): ModelRequest | undefined {
  const { asked, kept } = compaction;
  const system = asked === undefined ? undefined : systemOf(recording, asked.request);
  const tools = asked === undefined ? undefined : toolsOf(recording, asked.request);
  if (asked === undefined || system === undefined || tools === undefined) return undefined;
  const messages = messagesBefore(run, compaction);
  const read = readForSummary(messages.slice(0, messages.length - kept), asked.question);
  return { system, tools, messages: withSummaryQuestion(read, asked.question), ...asked.request.options };
}

function messagesBefore(
  { history, prompt, steps }: RecordedRun,
  end: RecordedAnswer | RecordedCompaction,
): readonly Message[] {
  const messages: Message[] = [...history, prompt];
  for (const step of steps) {
    if (step === end) break;
    if (step.type === "answer") messages.push(step.answer.message);
    else if (step.type === "compaction") messages.splice(0, messages.length - step.kept, step.summary);
    else messages.push(step.message);
  }
  return messages;
}

function addCost(
  { recorded, now }: ReplayedRun["costUsd"],
  { answer, costUsd: cost = 0 }: RecordedAnswer,
  { priceOf }: AgentNow,
): ReplayedRun["costUsd"] {
  const price = priceOf?.(answer.model);
  return { recorded: recorded + cost, now: now + (price === undefined ? cost : costOf(answer.usage, price)) };
}

function firstAnswer({ steps }: RecordedRun): RecordedAnswer | undefined {
  return steps.find((step) => step.type === "answer");
}

function decided(value: unknown): unknown {
  return isRecord(value) ? value.value : undefined;
}

function textIn(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
