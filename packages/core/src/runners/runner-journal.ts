import type { ToolCallUpdate } from "@agentclientprotocol/sdk";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { CallIntent } from "../conversation/interrupted-agent.ts";
import type { ToolResultBlock, ToolUseBlock, UserMessage } from "../conversation/message.ts";
import type { PermissionDenial, RunEvent } from "../conversation/run-event.ts";
import { noUsage, type Usage } from "../conversation/usage.ts";
import type { AuthorizedCall, RefusedCall } from "../loop/authorize-call.ts";
import type { Tally } from "../loop/tally.ts";
import type { EventChannel } from "./event-channel.ts";

/** What a program does by itself, as a conversation of ours: its words, its calls, and their outcomes. */
export interface RunnerJournal {
  /** Takes one update of its session as it was sent. */
  take(update: unknown): void;
  /** What is known of one of its calls so far, with what a request adds. */
  merge(update: ToolCallUpdate): ToolCallUpdate;
  /** Writes down that it is about to make a call, under the names of ours; resolves when that is recorded. */
  begin(id: string, call: Omit<ToolUseBlock, "id" | "type">): Promise<void>;
  /** Says how a call of it was decided; one that was refused has ended. */
  decide(id: string, decision: AuthorizedCall | RefusedCall): void;
  /** A call that we make for it: its beginning, and its results when they are there. */
  serve(call: ToolUseBlock): Promise<void>;
  served(blocks: readonly ToolResultBlock[], data: Readonly<Record<string, unknown>>): Promise<void>;
  /** What it said since its last call ends an answer, with what that took. */
  answer(taken: { readonly usage: Usage; readonly costUsd: number | undefined }): Promise<void>;
  /** What is open when its turn ends has no result any more. */
  settle(): void;
  /** Its words since the prompt, for the result. */
  text(): string;
  /** How often it has started something new. */
  turns(): number;
}

export interface JournalOptions {
  /** How the program is called where a model would be named. */
  readonly model: string;
  readonly channel: EventChannel;
  readonly tally: Tally;
  readonly now: () => number;
  /** Called with each call of its own that has ended and was allowed. */
  readonly ended?: (id: string, outcome: { readonly content: string; readonly isError: boolean }) => void;
  /** Called with what it reports of its money. */
  readonly cost: (totalUsd: number) => void;
}

interface OwnCall {
  update: ToolCallUpdate;
  block?: ToolUseBlock;
  startedAt?: number;
  decision?: AuthorizedCall | RefusedCall;
}

/** So much text of one answer is no answer any more. */
const maxText = 8 * 1024 * 1024;
/** So many calls that have not ended are no work any more. */
const maxOpen = 5_000;
const maxKept = 100_000;

export function createRunnerJournal(options: JournalOptions): RunnerJournal {
  const { channel } = options;
  const answers = createAnswers(options);
  const calls = createOwnCalls(options, answers);
  return {
    take(notification) {
      const update = isRecord(notification) && isRecord(notification["update"]) ? notification["update"] : {};
      switch (update["sessionUpdate"]) {
        case "agent_message_chunk": {
          const text = textOfBlock(update["content"]);
          answers.add(text);
          if (text !== "")
            void channel.push({ type: "model-streamed", event: { type: "text-delta", index: 0, text } });
          return;
        }
        case "agent_thought_chunk": {
          const text = textOfBlock(update["content"]);
          void channel.push({ type: "model-streamed", event: { type: "thinking-delta", index: 0, text } });
          return;
        }
        case "tool_call":
        case "tool_call_update":
          calls.take(update);
          return;
        case "usage_update": {
          const cost = isRecord(update["cost"]) ? update["cost"] : {};
          if (typeof cost["amount"] === "number" && cost["currency"] === "USD") options.cost(cost["amount"]);
          return;
        }
        // Plans, commands, modes and titles are its own concern; each is a sign of life.
        default:
          void channel.push({ type: "model-streamed", event: { type: "request-waiting" } });
      }
    },
    begin: calls.begin,
    merge: calls.merge,
    decide: calls.decide,
    settle: calls.settle,
    serve: (call) =>
      answers.write([call], [{ callId: call.id, tool: call.name, repeats: "unsafe" }], nothing),
    served: (blocks, data) => channel.push(userAdded(blocks, data)),
    answer: (taken) => answers.write([], [], taken),
    text: answers.text,
    turns: () => answers.count(),
  };
}

interface Taken {
  readonly usage: Usage;
  readonly costUsd: number | undefined;
}

/** What a call takes is reported at the end of the turn that it belongs to. */
const nothing: Taken = { usage: noUsage, costUsd: 0 };

interface Answers {
  /** A piece of what it says now. */
  add(text: string): void;
  /** Writes what it said as an answer, with the calls that follow it. */
  write(blocks: readonly ToolUseBlock[], intents: readonly CallIntent[], taken: Taken): Promise<void>;
  text(): string;
  count(): number;
}

function createAnswers({ channel, tally, model }: JournalOptions): Answers {
  let pending = "";
  let last = "";
  let count = 0;
  return {
    add(text) {
      if (pending.length + text.length > maxText)
        throw flooded(`${model} wrote more than ${maxText} characters in one answer`);
      pending += text;
    },
    write(blocks, intents, { usage, costUsd: cost }) {
      const text = pending.trim();
      pending = "";
      if (text !== "") last = text;
      count += 1;
      tally.addTurn(usage, 0, cost);
      tally.addText(text);
      void channel.push({ type: "turn-started", turn: count });
      return channel.push({
        type: "assistant-answered",
        id: `${model}-${count}`,
        model,
        message: {
          role: "assistant",
          content: [...(text === "" ? [] : [{ type: "text" as const, text }]), ...blocks],
        },
        stopReason: blocks.length === 0 ? "end_turn" : "tool_use",
        usage,
        costUsd: cost,
        ...(intents.length === 0 ? {} : { intents }),
      });
    },
    text: () => (pending.trim() === "" ? last : pending.trim()),
    count: () => count,
  };
}

type OwnCalls = Pick<RunnerJournal, "begin" | "merge" | "decide" | "settle"> & {
  readonly take: (update: JsonRecord) => void;
};

/** The calls that it makes by itself, from their first mention to their end. */
function createOwnCalls(options: JournalOptions, answers: Answers): OwnCalls {
  const { channel, tally, now, model } = options;
  const calls = new Map<string, OwnCall>();
  /** Those that are over: later reports about them add nothing. */
  const over = new Set<string>();

  function open(id: string): OwnCall {
    const known = calls.get(id);
    if (known !== undefined) return known;
    if (calls.size >= maxOpen) throw flooded(`${model} left more than ${maxOpen} calls open`);
    const call: OwnCall = { update: { toolCallId: id } };
    calls.set(id, call);
    return call;
  }

  function begin(id: string, named: Omit<ToolUseBlock, "id" | "type">): Promise<void> {
    const call = open(id);
    return call.block === undefined ? write(call, { type: "tool_use", id, ...named }) : Promise.resolve();
  }

  async function write(call: OwnCall, block: ToolUseBlock): Promise<void> {
    call.block = block;
    call.startedAt = now();
    // It may have had its effect when nothing is received from it any more.
    const written = answers.write(
      [block],
      [{ callId: block.id, tool: block.name, repeats: "unsafe" }],
      nothing,
    );
    void channel.push({ type: "call-started", call: block, effect: "execute" });
    await written;
  }

  function finish(
    id: string,
    { content, isError }: { readonly content: string; readonly isError: boolean },
  ): void {
    const call = calls.get(id);
    if (call === undefined) return;
    calls.delete(id);
    if (over.size >= maxOpen) over.clear();
    over.add(id);
    const { block = { type: "tool_use", id, ...nameOf(call.update) }, decision } = call;
    if (call.block === undefined) void write(call, block);
    const denied = decision?.type === "refused" && decision.denied ? decision.reason : undefined;
    const denials: readonly PermissionDenial[] =
      denied === undefined ? [] : [{ call: block, reason: denied }];
    tally.addCalls(1, denials);
    void channel.push({
      type: "call-finished",
      call: block,
      isError,
      content,
      durationMs: now() - (call.startedAt ?? now()),
      denied,
      ...(decision?.asked === true ? { asked: true } : {}),
      approval: decision?.approval,
      ...(decision?.type === "authorized" && decision.allowedBy !== undefined && decision.reason !== undefined
        ? { allowed: { by: decision.allowedBy, reason: decision.reason } }
        : {}),
    });
    const error = isError ? { is_error: true } : {};
    void channel.push(userAdded([{ type: "tool_result", tool_use_id: id, content, ...error }], {}));
    options.ended?.(id, { content, isError });
  }

  return {
    begin,
    take(update) {
      const id = update["toolCallId"];
      if (typeof id !== "string" || id === "" || over.has(id)) return;
      const { status } = update;
      const isOver = status === "completed" || status === "failed";
      const call = open(id);
      call.update = mergeUpdate(call.update, update);
      void channel.push({ type: "model-streamed", event: { type: "request-waiting" } });
      if (isOver) finish(id, { content: resultOf(call.update), isError: status === "failed" });
      else if (status === "in_progress" && hasInput(call.update)) void begin(id, nameOf(call.update));
    },
    merge(update) {
      const call = open(update.toolCallId);
      // The package has checked it; it is merged as any other.
      call.update = mergeUpdate(call.update, update as unknown as JsonRecord);
      return call.update;
    },
    decide(id, decision) {
      const call = calls.get(id);
      if (call === undefined) return;
      call.decision = decision;
      if (decision.type === "refused") finish(id, { content: decision.reason, isError: true });
    },
    settle() {
      for (const id of [...calls.keys()])
        finish(id, { content: "Nothing more was reported about this call.", isError: true });
    },
  };
}

function userAdded(blocks: readonly ToolResultBlock[], data: Readonly<Record<string, unknown>>): RunEvent {
  const message: UserMessage = { role: "user", content: blocks };
  return { type: "user-added", message, origin: "tool-results", results: data };
}

function flooded(what: string): RetinueError {
  return new RetinueError("runner-flooded", `${what} and was ended.`);
}

const fields = ["title", "kind", "status", "content", "locations", "rawInput", "rawOutput", "name"] as const;

/** Later words of a call replace earlier ones; what cannot be read is left out. */
function mergeUpdate(before: ToolCallUpdate, update: JsonRecord): ToolCallUpdate {
  const given = fields.flatMap((key): (readonly [string, unknown])[] => {
    const value = update[key];
    if (value === undefined || value === null) return [];
    if (key === "content" || key === "locations") {
      const list = Array.isArray(value) ? value.filter((part) => isReadable(key, part)) : [];
      return list.length === 0 ? [] : [[key, list] as const];
    }
    const isText = typeof value === "string";
    if (key !== "rawInput" && key !== "rawOutput") return isText ? [[key, value] as const] : [];
    // An input that is filled in later, as it is generated.
    return key === "rawInput" && isRecord(value) && Object.keys(value).length === 0
      ? []
      : [[key, value] as const];
  });
  return { ...before, ...Object.fromEntries(given) };
}

function isReadable(key: "content" | "locations", part: unknown): boolean {
  if (!isRecord(part)) return false;
  if (key === "locations") return typeof part["path"] === "string";
  if (part["type"] === "diff") return typeof part["path"] === "string" && typeof part["newText"] === "string";
  return part["type"] === "content" ? isRecord(part["content"]) : part["type"] === "terminal";
}

function hasInput({ rawInput, locations, content }: ToolCallUpdate): boolean {
  return rawInput !== undefined || (locations ?? []).length > 0 || (content ?? []).length > 0;
}

/** How one of its own calls is named where no permission was asked for it. */
function nameOf({
  title,
  name,
  kind,
  rawInput,
  locations,
}: ToolCallUpdate): Omit<ToolUseBlock, "id" | "type"> {
  const input = isRecord(rawInput) ? rawInput : {};
  const places = (locations ?? []).map(({ path }) => path);
  return {
    name: name ?? kind ?? "tool",
    input: {
      ...(title === undefined || title === null ? {} : { title }),
      ...input,
      ...(places.length === 0 ? {} : { locations: places }),
    },
  };
}

function resultOf({ content, rawOutput }: ToolCallUpdate): string {
  const texts = (content ?? []).map((part) => {
    if (part.type === "content") return textOfBlock(part.content);
    return part.type === "diff" ? `Changed ${part.path}.` : "";
  });
  const joined = texts.filter((text) => text !== "").join("\n");
  const raw = typeof rawOutput === "string" ? rawOutput : JSON.stringify(rawOutput ?? "");
  const whole = joined === "" && rawOutput !== undefined ? raw : joined;
  return whole.length > maxKept ? `${whole.slice(0, maxKept)} …` : whole || "(no output)";
}

function textOfBlock(block: unknown): string {
  return isRecord(block) && block["type"] === "text" && typeof block["text"] === "string"
    ? block["text"]
    : "";
}
