import type { RunEvent } from "../conversation/run-event.ts";
import { eventFields, eventLines } from "./event-lines.ts";
import type { JournaledPlan } from "./journaled-plan.ts";
import {
  type Answer,
  type Compaction,
  createCallFacts,
  lineMakers,
  type MakeLine,
  systemLine,
} from "./line-makers.ts";
import type { ConversationSources } from "./rebuild-conversation.ts";
import { customTitleLine, type TranscriptFacts, tagLine } from "./transcript-facts.ts";

export interface TranscriptWriterOptions {
  readonly log: TranscriptLog;
  readonly ids: IdSource;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Asked for each event, because folder, branch and mode change while a session runs. */
  readonly facts: TranscriptFacts;
  /** The line a resumed conversation continues from. */
  readonly leaf?: string | undefined;
  /** The lines of a resumed conversation, some of which a compaction may keep. */
  readonly sources?: ConversationSources | undefined;
  readonly observer?: TranscriptObserver | undefined;
}

/** Shows the conversation elsewhere, under the ids of its lines. */
export interface TranscriptObserver {
  /** Ids for the lines of an event that were promised elsewhere: of the last line, or of each. */
  readonly uuidFor?: (event: RunEvent) => string | readonly string[] | undefined;
  /** The ids of the lines that an event became. */
  readonly written?: (event: RunEvent, uuids: readonly string[]) => void;
  /** Called with every line that was written. */
  readonly appended?: ((lines: readonly string[]) => void) | undefined;
  /** A title the session is given at its start. */
  readonly title?: string | undefined;
  /** Called with the title that a resumed session was given earlier. */
  readonly titled?: (title: string) => void;
}

/** Where the lines go. */
interface TranscriptLog {
  /** Takes whole lines and returns when they are kept; gives the bytes kept so far. */
  append(lines: readonly string[]): number;
  /** Bytes kept before the first of them. */
  readonly length?: number;
  /** Resolves when the first so many bytes would survive a power cut; absent where nothing has to. */
  sync?(length: number): Promise<void>;
}

/** Keeps a conversation in a transcript. Each method returns when its lines are written, or throws and has written none. */
export interface TranscriptWriter {
  /** The newest line of the conversation. */
  readonly leaf: string | undefined;
  /** Writes what an event adds to the conversation; most of those it takes add nothing. */
  record(event: RunEvent): void;
  /** Writes down what was decided for the run that begins: immediately, or behind the next lines of the conversation. */
  readonly plan: RecoveryRecords["plan"];
  /** Records that hooks are about to be notified of the child; resolves when that would survive a power cut. */
  reported(event: ReportedEvent): Promise<void>;
  /** Resolves when the plan and everything said so far would survive a power cut; waited for before anything has an effect. */
  commit(): Promise<void>;
  readonly beside: RecoveryRecords["beside"];
  rename(title: string): void;
  tag(tag: string): void;
}

export function createTranscriptWriter(options: TranscriptWriterOptions): TranscriptWriter {
  const { now, facts, sources } = options;
  const log = openLogWriter(options.log, options.observer);
  let answerLines: ReadonlyMap<string, string> = new Map();
  const records = createRecoveryRecords({ log, now, facts });
  const chain = createChain(options, log, records);
  const window = createCompactionWindow(sources);
  const calls = createCallFacts(now);

  const writeAnswer = (event: Answer) => {
    const uuids = chain.write(lineMakers.answer(event, facts), { event });
    window.addAnswer(uuids);
    answerLines = new Map(
      event.message.content.flatMap((block, index) =>
        block.type === "tool_use" ? [[block.id, uuids[index] ?? ""] as const] : [],
      ),
    );
  };

  /** Both lines in one write, so that no crash leaves a boundary without its summary. */
  const writeCompaction = (event: Compaction) => {
    const kept = window.newest(event.keptAnswers);
    const before = chain.leaf() ?? null;
    const makers = lineMakers.compaction(event, { facts, kept, before });
    const [, summary] = chain.write(makers, { parent: null });
    window.replace(summary ?? "", event.keptAnswers);
  };

  return {
    get leaf() {
      return chain.leaf();
    },
    record: (event) => {
      if (callEvents.has(event.type)) calls.notify(event);
      if (event.type === "assistant-answered") writeAnswer(event);
      if (event.type === "call-finished") records.finish(event);
      if (event.type === "runner-opened") {
        records.runner(event);
        log.mark();
      }
      if (event.type === "user-added")
        window.add(chain.write(lineMakers.addition(event, facts, { answerLines, calls }), { event }));
      if (event.type === "context-compacted") writeCompaction(event);
      const beside = eventFields(event);
      if (beside !== undefined) chain.write([(place) => systemLine(place, facts, beside)]);
    },
    plan(plan, when) {
      records.plan(plan, when);
      log.mark();
    },
    reported(event) {
      records.reported(event);
      log.mark();
      return log.commit();
    },
    commit: log.commit,
    beside: records.beside,
    rename: (title) => log.append([JSON.stringify(customTitleLine(facts.sessionId, title))]),
    tag: (tag) => log.append([JSON.stringify(tagLine(facts.sessionId, tag))]),
  };
}

/** The events of which something is written, or is needed for what is written later. */
export const transcriptEvents: ReadonlySet<RunEvent["type"]> = new Set([
  "runner-opened",
  "user-added",
  "assistant-answered",
  "call-started",
  "call-finished",
  "context-compacted",
  // The keys of that table are types of events.
  ...(Object.keys(eventLines) as RunEvent["type"][]),
]);

/** What says how calls go. */
const callEvents: ReadonlySet<RunEvent["type"]> = new Set([
  "assistant-answered",
  "call-started",
  "call-finished",
]);

/** The lines of a conversation, each of which names the one before it. */
interface LineChain {
  leaf(): string | undefined;
  /** Returns the ids of the lines. The chain moves on only when they are kept. */
  write(
    makers: readonly MakeLine[],
    options?: { readonly parent?: string | null; readonly event?: RunEvent },
  ): readonly string[];
}

function createChain(
  { ids, now, leaf: start, observer }: TranscriptWriterOptions,
  log: LogWriter,
  records: RecoveryRecords,
): LineChain {
  let leaf = start ?? null;
  return {
    leaf: () => leaf ?? undefined,
    write(makers, { parent = leaf, event } = {}) {
      const timestamp = new Date(now()).toISOString();
      const given = event === undefined ? undefined : observer?.uuidFor?.(event);
      const uuids = makers.map((_, index) => {
        const own = typeof given === "string" && index === makers.length - 1 ? given : undefined;
        return own ?? (typeof given === "string" ? undefined : given?.[index]) ?? ids.uuid();
      });
      const texts = makers.map((make, index) => {
        const place = { uuid: uuids[index] ?? "", parentUuid: uuids[index - 1] ?? parent, timestamp };
        return JSON.stringify(make(place, uuids));
      });
      const beside = records.take(event);
      log.append([...texts, ...beside]);
      log.mark();
      // Begins while the call is still being authorized; a failure is reported to the commit that is awaited later.
      if (event?.type === "assistant-answered" ? hasEffect(event) : beside.length > 0)
        log.commit().catch(() => undefined);
      leaf = uuids.at(-1) ?? leaf;
      if (event !== undefined) observer?.written?.(event, uuids);
      return uuids;
    },
  };
}

/** The log with a mark up to which a commit brings it to the disk; lines are also shown to the observer. */
interface LogWriter {
  append(lines: readonly string[]): void;
  /** From now on, a commit includes everything written so far; results of single calls need not be on the disk. */
  mark(): void;
  /** Resolves when everything up to the mark would survive a power cut. */
  commit(): Promise<void>;
}

function openLogWriter(log: TranscriptLog, observer: TranscriptObserver | undefined): LogWriter {
  let written = log.length ?? 0;
  let marked = 0;
  return {
    append(lines) {
      written = log.append(lines);
      observer?.appended?.(lines);
    },
    mark() {
      marked = written;
    },
    commit: async () => log.sync?.(marked),
  };
}

/** Some call of the answer does more than look. */
function hasEffect(event: RunEvent): boolean {
  return (
    event.type === "assistant-answered" && event.intents?.some(({ repeats }) => repeats !== "pure") === true
  );
}

/** What is written beside the conversation, for the recovery of a run that was interrupted. */
interface RecoveryRecords {
  /** Lines that belong in the same write as the next ones of the conversation. */
  take(event?: RunEvent): readonly string[];
  /** Writes the result of a call down while others of the same answer still run. */
  finish(event: Extract<RunEvent, { type: "call-finished" }>): void;
  plan(plan: JournaledPlan, when: "now" | "with-next"): void;
  reported(event: ReportedEvent): void;
  runner(event: RunnerOpened): void;
  /** Appends lines of others to the next ones of the conversation. */
  beside(lines: readonly object[]): void;
}

type RunnerOpened = Extract<RunEvent, { type: "runner-opened" }>;

interface RecoveryRecordOptions {
  readonly log: Pick<LogWriter, "append">;
  readonly now: () => number;
  readonly facts: TranscriptFacts;
}

function createRecoveryRecords({ log, now, facts }: RecoveryRecordOptions): RecoveryRecords {
  const open = new Set<string>();
  const waiting: object[] = [];
  let plan: JournaledPlan | undefined;
  const about = () => ({ ...facts, timestamp: new Date(now()).toISOString() });
  const write = (line: object): void => log.append([JSON.stringify(line)]);
  return {
    take(event) {
      const intents = event?.type === "assistant-answered" ? (event.intents ?? []) : [];
      if (event?.type === "assistant-answered") open.clear();
      for (const { callId } of intents) open.add(callId);
      const lines = [
        // Which calls the answer is about to make, and what repeating each would do.
        ...(intents.length === 0
          ? []
          : [
              {
                type: "retinue-intents",
                ...aboutPart(about()),
                calls: intents.map(({ callId, tool, repeats }) => ({ id: callId, name: tool, repeats })),
              },
            ]),
        ...(event?.type === "assistant-answered" && event.request !== undefined
          ? // What the answer before this line was asked with.
            [{ type: "retinue-request", ...aboutPart(about()), ...event.request }]
          : []),
        ...(plan === undefined ? [] : [planLine(about(), plan)]),
        ...waiting.splice(0),
      ];
      plan = undefined;
      return lines.map((line) => JSON.stringify(line));
    },
    /** The last call of an answer needs no line of its own: the results of all are written next. */
    finish({ call: { id }, isError, content }) {
      if (!open.delete(id) || open.size === 0 || content === undefined) return;
      write({ type: "retinue-outcome", ...aboutPart(about()), id, isError, content });
    },
    plan(decided, when) {
      if (when === "now") write(planLine(about(), decided));
      else plan = decided;
    },
    // Written before hooks are notified of a start or stop, so that no crash notifies them twice.
    reported: (event) => write({ type: "retinue-told", ...aboutPart(about()), event }),
    runner: ({ runner, session }) =>
      write({ type: "retinue-runner", ...aboutPart(about()), runner, session }),
    beside: (lines) => void waiting.push(...lines),
  };
}

/** The lines of the conversation since the last compaction, so that the next one can say which of them it keeps. */
interface CompactionWindow {
  addAnswer(lines: readonly string[]): void;
  add(lines: readonly string[]): void;
  /** From the first line of the answer that is so many from the end. */
  newest(answers: number): readonly string[];
  /** Those continue behind a summary. */
  replace(summary: string, answers: number): void;
}

export function createCompactionWindow(
  { lines: before, answers: startedAnswers }: ConversationSources = { lines: [], answers: [] },
): CompactionWindow {
  let lines = [...before];
  const places = new Map(lines.map((line, at) => [line, at]));
  let answers = startedAnswers.flatMap((line) => places.get(line) ?? []);
  const placeOf = (count: number): number =>
    count === 0 ? lines.length : (answers.at(-count) ?? answers[0] ?? lines.length);
  return {
    addAnswer(added) {
      answers.push(lines.length);
      lines.push(...added);
    },
    add: (added) => void lines.push(...added),
    newest: (count) => lines.slice(placeOf(count)),
    replace(summary, count) {
      const place = placeOf(count);
      lines = [summary, ...lines.slice(place)];
      answers = answers.filter((at) => at >= place).map((at) => at - place + 1);
    },
  };
}

/** Where new ids come from; injected, so that tests and replays know them. */
export interface IdSource {
  /** A fresh UUID. */
  uuid(): string;
}

/**
 * What lines have that only this product writes, for readers that find a run cut off. They are no part of the
 * conversation's tree: without `uuid`, viewers and the chain pass over them.
 */
type About = Pick<TranscriptFacts, "sessionId" | "agentId"> & { readonly timestamp: string };

/** What was decided for the run that begins here. */
function planLine(about: About, plan: JournaledPlan) {
  return { type: "retinue-plan", ...aboutPart(about), plan };
}

/** `goes-on`: hooks refused its stop, so it will be reported again. */
export type ReportedEvent = "SubagentStart" | "SubagentStop" | "goes-on";

function aboutPart({ sessionId, agentId, timestamp }: About) {
  return { ...(agentId === undefined ? {} : { isSidechain: true, agentId }), sessionId, timestamp };
}
