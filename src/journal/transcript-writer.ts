import type { TextBlock, ToolResultBlock, UserBlock, UserMessage } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import type { IdSource } from "./id-source.ts";
import {
  assistantLine,
  compactBoundaryLine,
  customTitleLine,
  type LinePlace,
  systemLine,
  type TranscriptFacts,
  tagLine,
  type UserLineFields,
  userLine,
} from "./transcript-line.ts";

export interface TranscriptWriterOptions {
  /** Takes whole lines and returns when they are kept. */
  readonly log: { append(lines: readonly string[]): number };
  readonly ids: IdSource;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Asked for each event, because folder, branch and mode change while a session runs. */
  readonly facts: () => TranscriptFacts;
  /** The line a resumed conversation goes on from. */
  readonly leaf?: string | undefined;
}

/** Keeps a conversation in a transcript. Each deed returns when its lines are written, or throws and has written none. */
export interface TranscriptWriter {
  /** The newest line of the conversation. */
  readonly leaf: string | undefined;
  /** Writes what an event adds to the conversation; most events add nothing. */
  record(event: RunEvent): void;
  /** Everything before is replaced by a summary from here on. */
  compact(fields: {
    readonly trigger: "auto" | "manual";
    readonly preTokens: number;
    readonly summary: string;
  }): void;
  rename(title: string): void;
  tag(tag: string): void;
}

type Answer = Extract<RunEvent, { type: "assistant-answered" }>;
type Addition = Extract<RunEvent, { type: "user-added" }>;
type MakeLine = (place: LinePlace) => object;

export function createTranscriptWriter({
  log,
  ids,
  now,
  facts,
  ...start
}: TranscriptWriterOptions): TranscriptWriter {
  let leaf = start.leaf ?? null;
  let answerLines: ReadonlyMap<string, string> = new Map();

  /** The chain moves on only when the lines are kept. */
  const write = (makers: readonly MakeLine[], parent: string | null = leaf): readonly string[] => {
    const timestamp = new Date(now()).toISOString();
    const uuids = makers.map(() => ids.uuid());
    const lines = makers.map((make, index) =>
      JSON.stringify(make({ uuid: uuids[index] ?? "", parentUuid: uuids[index - 1] ?? parent, timestamp })),
    );
    log.append(lines);
    leaf = uuids.at(-1) ?? leaf;
    return uuids;
  };

  const writeAnswer = (event: Answer) => {
    const uuids = write(answerMakers(event, facts()));
    answerLines = new Map(
      event.message.content.flatMap((block, index) =>
        block.type === "tool_use" ? [[block.id, uuids[index] ?? ""] as const] : [],
      ),
    );
  };

  return {
    get leaf() {
      return leaf ?? undefined;
    },
    record: (event) => {
      if (event.type === "assistant-answered") writeAnswer(event);
      if (event.type === "user-added") write(additionMakers(event, facts(), answerLines));
      if (event.type === "run-ended") write([endingMaker(event.ending, facts())]);
    },
    compact: ({ trigger, preTokens, summary }) => {
      const current = facts();
      const logicalParentUuid = leaf;
      const message: UserMessage = { role: "user", content: summary };
      write(
        [
          (place) => compactBoundaryLine(place, current, { trigger, preTokens, logicalParentUuid }),
          (place) => userLine(place, current, { message, isCompactSummary: true }),
        ],
        null,
      );
    },
    rename: (title) => void log.append([JSON.stringify(customTitleLine(facts().sessionId, title))]),
    tag: (tag) => void log.append([JSON.stringify(tagLine(facts().sessionId, tag))]),
  };
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

/** Each result stands in a line of its own beside what programs keep of it; everything else follows in one line. */
function additionMakers(
  { message, results = {}, origin }: Addition,
  facts: TranscriptFacts,
  answerLines: ReadonlyMap<string, string>,
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
      sourceToolAssistantUUID: answerLines.get(block.tool_use_id),
    } as const;
    return (place) => userLine(place, facts, fields);
  });
  if (rest.length === 0) return makers;
  return [
    ...makers,
    (place) => userLine(place, facts, { message: { role: "user", content: rest }, ...provenance }),
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
