// @io
import { readdir } from "node:fs/promises";
import { basename } from "node:path";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type ParsedLines, readLines } from "@retinue/base/storage/read-lines.ts";
import type { AssistantBlock, Message, StopReason, UserBlock, UserMessage } from "../conversation/message.ts";
import type { AskedSummary, RequestRecord } from "../conversation/run-event.ts";
import type { Usage } from "../conversation/usage.ts";
import { findNamedInspected } from "../inspection/find-named-inspected.ts";
import { loadRequestPart } from "../journal/create-request-recorder.ts";
import { interruptedResults, rebuildConversation } from "../journal/rebuild-conversation.ts";
import { type DecidingOptions, readChoice, readOptionLine } from "../journal/session-choices.ts";
import { isAgentId, type SessionFiles, sessionFiles } from "../journal/session-files.ts";
import { describeDamage, findDamage } from "../journal/transcript-damage.ts";
import {
  mainAgent,
  type RecordedAgent,
  type RecordedResult,
  type RecordedRun,
  type RecordedStep,
  type Recording,
} from "./recording.ts";

/** Reads a session, or one child of it, by what a person calls it; a RetinueError where there is nothing to replay. */
export async function loadRecording(transcripts: string, written: string | undefined): Promise<Recording> {
  const { sessionId, agentId } = await findNamedInspected(transcripts, written);
  const files = sessionFiles(transcripts, sessionId);
  const damage = new Map<string, string>();
  const load = async (id: string, file: string): Promise<readonly JsonRecord[]> => {
    const lines = await loadLines(file);
    const text = describeDamage(basename(file), findDamage(lines), "Lost lines cannot be replayed.");
    if (text !== undefined) damage.set(id, text);
    return lines.values;
  };
  const main = await load(mainAgent, files.transcript);
  // What a child began with that started with its parent's conversation: that, up to the answer that started it.
  const forks: (plan: JsonRecord) => readonly Message[] = ({ task, history }) => {
    if (!isRecord(task) || task.forksContext !== true) return [];
    const count = isRecord(history) && typeof history.messages === "number" ? history.messages : undefined;
    const at = main.findLastIndex((record) => startsCall(record, task.callId));
    const { messages } = readRecordedRuns(main.slice(0, at === -1 ? main.length : wholeAnswer(main, at)), {
      sidechain: false,
    });
    return count === undefined ? messages : messages.slice(0, count);
  };
  const own = readRecordedRuns(main, { sidechain: false });
  const agents: RecordedAgent[] =
    own.runs.length === 0 ? [] : [{ id: mainAgent, name: mainAgent, runs: own.runs }];
  for (const id of await findChildren(files)) {
    const lines = await load(id, files.agent(id).transcript);
    const { runs } = readRecordedRuns(lines, { sidechain: true, inherited: forks });
    if (runs.length > 0) agents.push({ id, name: nameOf(runs[0]?.plan, id), runs });
  }
  const wanted = agentId === undefined ? agents : agents.filter(({ id }) => id === agentId);
  const damaged = [...damage].flatMap(([id, text]) => (agentId === undefined || id === agentId ? text : []));
  if (wanted.length === 0)
    throw new RetinueError(
      "nothing-recorded",
      [`Nothing was recorded of ${agentId ?? sessionId} that can be replayed.`, ...damaged].join(" "),
      {
        advice: "`retinue inspect` shows what was recorded of a session.",
      },
    );
  return {
    sessionId,
    directory: directoryOf(main, wanted),
    agents: wanted,
    parts: loadParts(files.directory, wanted),
    ...(damaged.length === 0 ? {} : { damage: damaged }),
  };
}

async function loadLines(file: string): Promise<ParsedLines> {
  try {
    return await readLines(file);
  } catch (error) {
    if (errorCode(error instanceof Error ? error.cause : undefined) === "ENOENT")
      return { values: [], broken: 0, torn: false };
    throw error;
  }
}

/** In the order in which they began, so that a report reads like the record. */
async function findChildren({ subagents, agent }: SessionFiles): Promise<readonly string[]> {
  const names = await readdir(subagents).catch(() => []);
  const ids = names.flatMap((name) => /^agent-(.+)\.jsonl$/.exec(name)?.[1] ?? []).filter(isAgentId);
  const starts = await Promise.all(
    ids.map(async (id) => {
      const { values } = await readLines(agent(id).transcript).catch(() => ({ values: [] as JsonRecord[] }));
      return {
        id,
        at: String(values.find(({ timestamp }) => typeof timestamp === "string")?.timestamp ?? ""),
      };
    }),
  );
  return starts.toSorted((a, b) => a.at.localeCompare(b.at) || a.id.localeCompare(b.id)).map(({ id }) => id);
}

function startsCall({ type, message }: JsonRecord, callId: unknown): boolean {
  if (type !== "assistant" || !isRecord(message) || !Array.isArray(message.content)) return false;
  return message.content.some((block: unknown) => isRecord(block) && block.id === callId);
}

function wholeAnswer(records: readonly JsonRecord[], at: number): number {
  const end = records.findIndex(
    ({ type, message }, index) =>
      index >= at && type === "assistant" && isRecord(message) && typeof message.stop_reason === "string",
  );
  return end === -1 ? records.length : end + 1;
}

function nameOf(plan: JsonRecord | undefined, id: string): string {
  const task = isRecord(plan?.task) ? plan.task : {};
  const { agentType, description } = task;
  const type = typeof agentType === "string" ? agentType : id;
  return typeof description === "string" && description !== "" ? `${type} (${description})` : type;
}

function directoryOf(main: readonly JsonRecord[], agents: readonly RecordedAgent[]): string {
  const planned = agents[0]?.runs[0]?.plan;
  const known =
    main.find(({ cwd }) => typeof cwd === "string")?.cwd ?? planned?.sessionDirectory ?? planned?.directory;
  return typeof known === "string" ? known : "";
}

function loadParts(directory: string, agents: readonly RecordedAgent[]): ReadonlyMap<string, unknown> {
  const requests = agents.flatMap(({ runs }) =>
    runs.flatMap(({ steps }) =>
      steps.flatMap((step) => (step.type === "answer" ? (step.request ?? []) : [])),
    ),
  );
  const names = new Set(requests.flatMap(({ system, tools }) => [system, tools]));
  return new Map([...names].map((name) => [name, loadRequestPart(directory, name)]));
}

interface ReadRunsOptions {
  /** The lines of a child are a side chain. */
  readonly sidechain: boolean;
  /** What a child began with that started with its parent's conversation, by its journaled plan. */
  readonly inherited?: (plan: JsonRecord) => readonly Message[];
}

type Answer = Extract<RecordedStep, { type: "answer" }>;

/** A run while its lines are read. */
type OpenRun = { -readonly [Key in keyof RecordedRun]: RecordedRun[Key] } & { steps: RecordedStep[] };

interface Reader {
  readonly records: readonly JsonRecord[];
  readonly sidechain: boolean;
  readonly inherited: ReadRunsOptions["inherited"];
  readonly runs: OpenRun[];
  readonly messages: { readonly message: Message; readonly line: string }[];
  run?: OpenRun | undefined;
  plan?: JsonRecord;
  given: DecidingOptions;
  named: { readonly agent?: string; readonly model?: string };
  /** The process that wrote on began here, with the conversation as it is read from the file. */
  isReopened: boolean;
  answer?: PartialAnswer | undefined;
  boundary?: JsonRecord | undefined;
}

/** Reads the runs of one agent from its lines, and keeps the conversation as its loop had it. Total: any lines will do. */
function readRecordedRuns(
  records: readonly JsonRecord[],
  { sidechain, inherited }: ReadRunsOptions,
): { readonly runs: readonly RecordedRun[]; readonly messages: readonly Message[] } {
  const reader: Reader = {
    records,
    sidechain,
    inherited,
    runs: [],
    messages: [],
    given: {},
    named: {},
    isReopened: true,
  };
  for (const [index, record] of records.entries()) {
    if (record.uuid !== undefined && (record.isSidechain === true) !== sidechain) continue;
    const { type, subtype } = record;
    if (type === "user") takeUser(reader, record, index);
    else if (type === "assistant" && record.isApiErrorMessage !== true) takeAnswer(reader, record);
    else if (type === "system" && subtype === "compact_boundary") reader.boundary = record;
    else if (type === "system" && subtype === "turn_duration") {
      if (reader.run !== undefined) reader.run.ending = endingOf(record);
      reader.run = undefined;
    } else takeBeside(reader, record, index);
  }
  return { runs: reader.runs, messages: conversation(reader) };
}

function conversation({ messages }: Reader): Message[] {
  return messages.map(({ message }) => message);
}

/** The conversation as a process finds it that opens the file. */
function reload(
  { records, sidechain, plan, inherited, messages }: Reader,
  until: number,
): readonly Message[] {
  const loaded = rebuildConversation(records.slice(0, until), { sidechain }).messages;
  const first = loaded.length === 0 && plan !== undefined ? (inherited?.(plan) ?? []) : loaded;
  messages.splice(0, messages.length, ...first.map((message) => ({ message, line: "" })));
  return first;
}

function begin(reader: Reader, record: JsonRecord, index: number): void {
  const { messages, runs, given, plan, named } = reader;
  const interrupted = interruptedResults(conversation(reader));
  if (interrupted.length > 0) messages.push({ message: { role: "user", content: interrupted }, line: "" });
  const history = reader.isReopened ? reload(reader, index) : conversation(reader);
  reader.isReopened = false;
  const prompt = userMessage(record);
  const uuid = text(record.uuid);
  reader.run = {
    history,
    prompt,
    uuid,
    steps: [],
    options: given,
    plan,
    ...named,
  };
  runs.push(reader.run);
  messages.push({ message: prompt, line: uuid });
}

function takeUser(reader: Reader, record: JsonRecord, index: number): void {
  const { messages, run } = reader;
  const message = userMessage(record);
  const line = text(record.uuid);
  const isResult = blocksOf(message).some(({ type }) => type === "tool_result");
  if (record.isCompactSummary === true) {
    const kept = keptMessages(reader.boundary, messages);
    const asked = askedSummary(reader.boundary);
    reader.boundary = undefined;
    messages.splice(0, messages.length - kept, { message, line });
    run?.steps.push({ type: "compaction", summary: message, kept, ...asked });
  } else if (typeof record.permissionMode === "string" && !isResult) {
    begin(reader, record, index);
  } else if (isResult || record.isPartOfResults === true) {
    const results = isResult ? [resultOf(record, message)] : [];
    const last = run?.steps.at(-1);
    const joins = last?.type === "results";
    const whole: UserMessage = joins
      ? { role: "user", content: [...blocksOf(last.message), ...blocksOf(message)] }
      : message;
    messages.splice(joins ? -1 : messages.length, joins ? 1 : 0, { message: whole, line });
    const step = {
      type: "results",
      results: [...(joins ? last.results : []), ...results],
      message: whole,
    } as const;
    run?.steps.splice(joins ? -1 : run.steps.length, joins ? 1 : 0, step);
  } else {
    messages.push({ message, line });
    run?.steps.push({ type: "message", kind: record.isMeta === true ? "said-by-loop" : "mail", message });
  }
}

function takeAnswer(reader: Reader, record: JsonRecord): void {
  // Each block is in a line of its own; the last one says why the answer ended.
  const before = reader.answer;
  const message = isRecord(record.message) ? record.message : {};
  const content = Array.isArray(message.content) ? (message.content as readonly AssistantBlock[]) : [];
  const isSame =
    before !== undefined && isRecord(before.record.message) && before.record.message.id === message.id;
  const answer: PartialAnswer = {
    record,
    blocks: isSame ? [...before.blocks, ...content] : content,
    uuid: isSame ? before.uuid : text(record.uuid),
    isWhole: typeof message.stop_reason === "string",
  };
  reader.answer = answer.isWhole ? undefined : answer;
  if (!answer.isWhole) return;
  const step = stepOf(answer);
  reader.messages.push({ message: step.answer.message, line: step.uuid });
  reader.run?.steps.push(step);
}

function takeBeside(reader: Reader, record: JsonRecord, index: number): void {
  const { run, records, messages } = reader;
  const isNew = run !== undefined && run.steps.length === 0;
  const agent = readChoice("agent", record);
  const model = readChoice("model", record);
  reader.named = {
    ...reader.named,
    ...(agent === undefined ? {} : { agent }),
    ...(model === undefined ? {} : { model }),
  };
  if (isNew) Object.assign(run, reader.named);
  const options = readOptionLine(record);
  if (options !== undefined) reader.given = options;
  if (isNew && options !== undefined) run.options = options;
  if (record.type === "retinue-request") addRequest(run, record);
  if (record.type !== "retinue-plan" || !isRecord(record.plan)) return;
  reader.plan = record.plan;
  reader.isReopened = true;
  if (!isNew) return;
  // The plan of a session is written behind its first prompt.
  const at = records.findIndex(({ uuid }) => uuid === run.uuid);
  run.plan = record.plan;
  run.history = reload(reader, at === -1 ? index : at);
  messages.push({ message: run.prompt, line: run.uuid });
  reader.isReopened = false;
}

function addRequest(run: OpenRun | undefined, record: JsonRecord): void {
  const at = run?.steps.findLastIndex(({ type }) => type === "answer") ?? -1;
  const step = run?.steps[at];
  const request = readRequest(record);
  if (run !== undefined && step?.type === "answer" && request !== undefined)
    run.steps[at] = { ...step, request };
}

function readRequest({ digest, system, tools, options }: JsonRecord): RequestRecord | undefined {
  if (typeof digest !== "string" || typeof system !== "string" || typeof tools !== "string") return undefined;
  return { digest, system, tools, ...(isRecord(options) ? { options } : {}) };
}

/** The newest messages, from the answer on whose line the boundary names first. */
function keptMessages(
  boundary: JsonRecord | undefined,
  messages: readonly { readonly message: Message; readonly line: string }[],
): number {
  const metadata = boundary?.compactMetadata;
  const preserved = isRecord(metadata) ? metadata.preservedMessages : undefined;
  const uuids: unknown = isRecord(preserved) ? preserved.uuids : undefined;
  if (!Array.isArray(uuids)) return 0;
  const named = new Set<unknown>(uuids);
  const at = messages.findIndex(({ line }) => named.has(line));
  return at === -1 ? 0 : messages.length - at;
}

interface PartialAnswer {
  readonly record: JsonRecord;
  readonly blocks: readonly AssistantBlock[];
  readonly uuid: string;
  readonly isWhole: boolean;
}

function stepOf({ record, blocks, uuid }: PartialAnswer): Answer {
  const message = isRecord(record.message) ? record.message : {};
  const { costUSD } = record;
  return {
    type: "answer",
    uuid,
    answer: {
      type: "message-ended",
      id: text(message.id),
      model: text(message.model),
      message: { role: "assistant", content: blocks },
      stopReason: text(message.stop_reason) as StopReason,
      usage: readUsage(message.usage),
    },
    ...(typeof costUSD === "number" ? { costUsd: costUSD } : {}),
  };
}

function readUsage(value: unknown): Usage {
  const usage = isRecord(value) ? value : {};
  const tokens = (name: string): number => {
    const count = usage[name];
    return typeof count === "number" ? count : 0;
  };
  return {
    inputTokens: tokens("input_tokens"),
    outputTokens: tokens("output_tokens"),
    cacheReadTokens: tokens("cache_read_input_tokens"),
    cacheWriteTokens: tokens("cache_creation_input_tokens"),
  };
}

/** What the model was asked for the summary, where that was recorded. */
function askedSummary(boundary: JsonRecord | undefined): { readonly asked?: AskedSummary } {
  const metadata = isRecord(boundary?.compactMetadata) ? boundary.compactMetadata : {};
  const asked = isRecord(metadata.summarizer) ? metadata.summarizer.asked : undefined;
  const isWhole =
    isRecord(asked) &&
    isRecord(asked.request) &&
    typeof asked.request.digest === "string" &&
    isRecord(asked.question) &&
    typeof asked.question.words === "number";
  // Written by a recorder of ours in this form.
  return isWhole ? { asked: asked as unknown as AskedSummary } : {};
}

function endingOf({ runEnding }: JsonRecord): NonNullable<RecordedRun["ending"]> {
  const ending = isRecord(runEnding) ? runEnding : {};
  const status = text(ending.status) as NonNullable<RecordedRun["ending"]>["status"];
  const error = ending.error;
  return { status, reason: text(ending.reason), ...(typeof error === "string" ? { error } : {}) };
}

function resultOf(record: JsonRecord, message: UserMessage): RecordedResult {
  const block = blocksOf(message).find((candidate) => candidate.type === "tool_result");
  const call = isRecord(record.toolCall) ? record.toolCall : undefined;
  const data = record.toolUseResult;
  return {
    // The caller has seen that there is one.
    block: block as RecordedResult["block"],
    ...(data === undefined || block?.is_error === true ? {} : { data }),
    ...(typeof call?.denied === "string" ? { denied: call.denied } : {}),
    asked: call?.asked === true,
  };
}

function blocksOf({ content }: UserMessage): readonly UserBlock[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function userMessage({ message }: JsonRecord): UserMessage {
  const content = isRecord(message) ? message.content : "";
  return { role: "user", content: Array.isArray(content) || typeof content === "string" ? content : "" };
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
