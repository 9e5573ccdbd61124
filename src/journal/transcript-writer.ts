import type { TextBlock, ToolResultBlock, UserBlock } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import type { IdSource } from "./id-source.ts";
import { createKeptLines } from "./kept-lines.ts";
import type { ReportedEvent } from "./plan-line.ts";
import type { ConversationSources } from "./rebuild-conversation.ts";
import { createSideLines, type SideLines } from "./side-lines.ts";
import {
  assistantLine,
  compactBoundaryLine,
  customTitleLine,
  type LinePlace,
  systemLine,
  type ToolCallFacts,
  type TranscriptFacts,
  tagLine,
  type UserLineFields,
  userLine,
  wireUsage,
} from "./transcript-facts.ts";

export interface TranscriptWriterOptions {
  readonly log: TranscriptLog;
  readonly ids: IdSource;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Asked for each event, because folder, branch and mode change while a session runs. */
  readonly facts: () => TranscriptFacts;
  /** The line a resumed conversation continues from. */
  readonly leaf?: string | undefined;
  /** The lines of a resumed conversation, some of which a compaction may keep. */
  readonly sources?: ConversationSources | undefined;
  readonly observer?: TranscriptObserver | undefined;
}

/** Whoever shows the conversation elsewhere under the ids of its lines. */
export interface TranscriptObserver {
  /** The id for the line of a prompt or message that came with one. */
  readonly uuidFor?: (event: RunEvent) => string | undefined;
  /** The ids of the lines that an event became. */
  readonly written?: (event: RunEvent, uuids: readonly string[]) => void;
  /** Hears every line that was written. */
  readonly appended?: ((lines: readonly string[]) => void) | undefined;
  /** A title the session is given at its start. */
  readonly title?: string | undefined;
}

/** Where the lines go. */
export interface TranscriptLog {
  /** Takes whole lines and returns when they are kept. */
  append(lines: readonly string[]): number;
  /** Bytes kept so far. */
  readonly length?: number;
  /** Resolves when the first so many bytes would survive a power cut; absent where nothing has to. */
  sync?(length: number): Promise<void>;
}

/** Keeps a conversation in a transcript. Each deed returns when its lines are written, or throws and has written none. */
export interface TranscriptWriter {
  /** The newest line of the conversation. */
  readonly leaf: string | undefined;
  /** Writes what an event adds to the conversation; most events add nothing. */
  record(event: RunEvent): void;
  /** Writes down what was decided for the run that begins: at once, or behind the next lines of the conversation. */
  readonly plan: SideLines["plan"];
  /** Writes down that hooks are about to hear of the child; resolves when that would survive a power cut. */
  reported(event: ReportedEvent): Promise<void>;
  /** Resolves when the plan and everything said so far would survive a power cut; waited for before anything has an effect. */
  commit(): Promise<void>;
  readonly beside: SideLines["beside"];
  rename(title: string): void;
  tag(tag: string): void;
}

type Answer = Extract<RunEvent, { type: "assistant-answered" }>;
type Addition = Extract<RunEvent, { type: "user-added" }>;
type Compaction = Extract<RunEvent, { type: "context-compacted" }>;
/** `uuids` are those of all lines that are written together. */
type MakeLine = (place: LinePlace, uuids: readonly string[]) => object;

export function createTranscriptWriter({
  log: given,
  ids,
  now,
  facts,
  ...start
}: TranscriptWriterOptions): TranscriptWriter {
  const log = mirrored(given, start.observer);
  let leaf = start.leaf ?? null;
  let answerLines: ReadonlyMap<string, string> = new Map();
  const lines = createKeptLines(start.sources);
  const calls = createCallFacts(now);
  const side = createSideLines({ log, now, facts });
  /** How much of the file must be on the disk before a call runs; results of single calls that follow it need not be. */
  let vital = 0;
  const commit = async (): Promise<void> => log.sync?.(vital);
  const mark = (): void => {
    vital = log.length ?? 0;
  };
  /** Begins while the call is still decided about; the one that waits for it later hears of a failure. */
  const commitSoon = (): void => void commit().catch(() => undefined);

  /** The chain moves on only when the lines are kept. */
  const write = (
    makers: readonly MakeLine[],
    { parent = leaf, event }: { readonly parent?: string | null; readonly event?: RunEvent } = {},
  ): readonly string[] => {
    const timestamp = new Date(now()).toISOString();
    const given = event === undefined ? undefined : start.observer?.uuidFor?.(event);
    const uuids = makers.map((_, index) =>
      given !== undefined && index === makers.length - 1 ? given : ids.uuid(),
    );
    const texts = makers.map((make, index) => {
      const place = { uuid: uuids[index] ?? "", parentUuid: uuids[index - 1] ?? parent, timestamp };
      return JSON.stringify(make(place, uuids));
    });
    const beside = side.take(event);
    log.append([...texts, ...beside]);
    mark();
    if (event?.type === "assistant-answered" ? hasEffect(event) : beside.length > 0) commitSoon();
    leaf = uuids.at(-1) ?? leaf;
    if (event !== undefined) start.observer?.written?.(event, uuids);
    return uuids;
  };

  const writeAnswer = (event: Answer) => {
    const uuids = write(answerMakers(event, facts()), { event });
    lines.addAnswer(uuids);
    answerLines = new Map(
      event.message.content.flatMap((block, index) =>
        block.type === "tool_use" ? [[block.id, uuids[index] ?? ""] as const] : [],
      ),
    );
  };

  /** Both lines at once, so that no crash leaves a boundary without its summary. */
  const writeCompaction = (event: Compaction) => {
    const kept = lines.newest(event.keptAnswers);
    const [, summary] = write(compactionMakers(event, { facts: facts(), kept, before: leaf }), {
      parent: null,
    });
    lines.replace(summary ?? "", event.keptAnswers);
  };

  return {
    get leaf() {
      return leaf ?? undefined;
    },
    record: (event) => {
      calls.hear(event);
      if (event.type === "assistant-answered") writeAnswer(event);
      if (event.type === "call-finished") side.finish(event);
      if (event.type === "user-added")
        lines.add(write(additionMakers(event, facts(), { answerLines, calls }), { event }));
      if (event.type === "model-retried") write([retryMaker(event, facts())]);
      if (event.type === "answer-lost") write([lostMaker(event, facts())]);
      if (event.type === "context-compacted") writeCompaction(event);
      if (event.type === "run-ended" || event.type === "run-idled") write([endingMaker(event.ending, facts())]);
    },
    plan(plan, when) {
      side.plan(plan, when);
      mark();
    },
    reported(event) {
      side.reported(event);
      mark();
      return commit();
    },
    commit,
    beside: side.beside,
    rename: (title) => void log.append([JSON.stringify(customTitleLine(facts().sessionId, title))]),
    tag: (tag) => void log.append([JSON.stringify(tagLine(facts().sessionId, tag))]),
  };
}

function mirrored(log: TranscriptLog, observer: TranscriptObserver | undefined): TranscriptLog {
  const { appended } = observer ?? {};
  if (appended === undefined) return log;
  return {
    append(lines) {
      const length = log.append(lines);
      appended(lines);
      return length;
    },
    get length() {
      return log.length ?? 0;
    },
    sync: async (length) => log.sync?.(length),
  };
}

/** Some call of the answer does more than look. */
function hasEffect(event: RunEvent): boolean {
  return (
    event.type === "assistant-answered" && event.intents?.some(({ repeats }) => repeats !== "pure") === true
  );
}

/** An answer without content still has a line, which carries what it cost. */
function answerMakers(event: Answer, facts: TranscriptFacts): readonly MakeLine[] {
  const { message, ...answer } = event;
  const parts = message.content.length === 0 ? [[]] : message.content.map((block) => [block]);
  return parts.map((content, index) => {
    const stopReason = index === parts.length - 1 ? answer.stopReason : null;
    return (place) => assistantLine(place, facts, { ...answer, content, stopReason });
  });
}

function compactionMakers(
  event: Compaction,
  {
    facts,
    kept,
    before,
  }: { readonly facts: TranscriptFacts; readonly kept: readonly string[]; readonly before: string | null },
): readonly MakeLine[] {
  const { trigger, preTokens, postTokens, durationMs, by, model, usage, cost } = event;
  return [
    (place, [, summary = ""]) =>
      compactBoundaryLine(place, facts, {
        trigger,
        preTokens,
        postTokens,
        durationMs,
        logicalParentUuid: before,
        ...(kept.length === 0 ? {} : { preserved: { anchorUuid: summary, uuids: kept } }),
        summarizer: { by, model, usage, cost },
      }),
    (place) => userLine(place, facts, { message: event.summary, isCompactSummary: true }),
  ];
}

/** Each result is in a line of its own beside what programs keep of it; everything else follows in one line. */
function additionMakers(
  { message, results = {}, origin }: Addition,
  facts: TranscriptFacts,
  { answerLines, calls }: { readonly answerLines: ReadonlyMap<string, string>; readonly calls: CallFacts },
): readonly MakeLine[] {
  const { content } = message;
  const answers = typeof content === "string" ? [] : content.filter(isToolResult);
  const rest = typeof content === "string" ? content : content.filter((block) => !isToolResult(block));
  const provenance = provenanceOf(origin, facts);
  const makers = answers.map((block): MakeLine => {
    const fields = {
      message: { role: "user", content: [block] },
      toolUseResult: Object.hasOwn(results, block.tool_use_id)
        ? results[block.tool_use_id]
        : errorText(block),
      toolCall: calls.take(block.tool_use_id),
      sourceToolAssistantUUID: answerLines.get(block.tool_use_id),
    } as const;
    return (place) => userLine(place, facts, fields);
  });
  if (rest.length === 0) return makers;
  return [
    ...makers,
    (place) =>
      userLine(place, facts, {
        message: { role: "user", content: rest },
        ...provenance,
        ...(message.mail === undefined ? {} : { mail: message.mail }),
      }),
  ];
}

/** The prompt of a child comes from its parent, so only the main conversation has a person in it. */
function provenanceOf(origin: Addition["origin"], facts: TranscriptFacts): Partial<UserLineFields> {
  if (origin === "system") return { isMeta: true };
  if (origin !== "prompt") return {};
  const kind = facts.agentId === undefined ? { kind: "human" } : undefined;
  return { origin: kind, permissionMode: facts.permissionMode };
}

function isToolResult(block: UserBlock): block is ToolResultBlock {
  return block.type === "tool_result";
}

function errorText({ content, is_error }: ToolResultBlock): string | undefined {
  if (is_error !== true) return undefined;
  if (typeof content === "string") return content;
  return content
    .filter((block): block is TextBlock => block.type === "text")
    .map(({ text }) => text)
    .join("\n");
}

/** What the run took, so that the file alone can tell it. */
function endingMaker({ status, reason, error, totals }: RunEnding, facts: TranscriptFacts): MakeLine {
  const { usage, turns, toolUses, durationMs, modelMs, cost } = totals;
  return (place) =>
    systemLine(place, facts, {
      subtype: "turn_duration",
      durationMs,
      isMeta: false,
      runEnding: { status, reason, error, turns, toolUses, modelMs, usage, costUSD: cost },
    });
}

/** An answer that broke off is no part of the conversation, but of what it cost. */
function lostMaker(
  { model, usage, cost }: Extract<RunEvent, { type: "answer-lost" }>,
  facts: TranscriptFacts,
): MakeLine {
  const lostAnswer = { model, usage: wireUsage(usage), costUSD: cost };
  return (place) =>
    systemLine(place, facts, { subtype: "answer_lost", level: "info", isMeta: false, lostAnswer });
}

/** A request that failed and is made again, in the words existing viewers read. */
function retryMaker(
  { attempt, maxAttempts, delayMs, code, status, message }: Extract<RunEvent, { type: "model-retried" }>,
  facts: TranscriptFacts,
): MakeLine {
  return (place) =>
    systemLine(place, facts, {
      subtype: "api_error",
      level: "error",
      error: { code, status, message: message.slice(0, 500) },
      retryInMs: Math.round(delayMs),
      retryAttempt: attempt,
      maxRetries: maxAttempts,
    });
}

/** Remembers how calls go until their results are written down, all of one answer together. */
interface CallFacts {
  hear(event: RunEvent): void;
  /** What is known of a call, once. */
  take(callId: string): ToolCallFacts | undefined;
}

/** `now` tells milliseconds since 1970. */
function createCallFacts(now: () => number): CallFacts {
  const started = new Map<string, number>();
  const finished = new Map<string, ToolCallFacts>();
  return {
    hear(event) {
      // Calls of an answer before that one have their results.
      if (event.type === "assistant-answered") {
        started.clear();
        finished.clear();
      }
      if (event.type === "call-started") started.set(event.call.id, now());
      if (event.type === "call-finished")
        finished.set(event.call.id, factsOf(event, started.get(event.call.id)));
    },
    take(callId) {
      const facts = finished.get(callId);
      finished.delete(callId);
      return facts;
    },
  };
}

function factsOf(
  { durationMs, decidedMs, asked, denied }: Extract<RunEvent, { type: "call-finished" }>,
  startedAt: number | undefined,
): ToolCallFacts {
  return {
    ...(startedAt === undefined ? {} : { startedAt }),
    durationMs: Math.round(durationMs),
    ...(decidedMs === undefined ? {} : { decidedMs: Math.round(decidedMs) }),
    ...(asked === true ? { asked } : {}),
    ...(denied === undefined ? {} : { denied }),
  };
}
