import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type AgentEvent, mainAgentId } from "../../conversation/agent-event.ts";
import { createAsyncQueue } from "../../loop/call-tools.ts";
import type { PendingApproval } from "./create-approval-queue.ts";
import type { AgentPart, ApprovalPart, ResponseOptions, ShownRun, UiMetadata } from "./to-response.ts";

/** The lines of a response: what happens in the run, and the questions that it puts meanwhile. */
export async function* responseLines(run: ShownRun, options: ResponseOptions): AsyncGenerator<string> {
  const { format = "events", approvals } = options;
  const lines = format === "events" ? eventLines(run, options) : uiLines(run, options);
  if (approvals === undefined) return yield* lines;
  const queue = createAsyncQueue<string>();
  const show = (approval: PendingApproval, state: ApprovalPart["state"]): void => {
    const data: ApprovalPart = { ...approval, state };
    queue.push(
      format === "events"
        ? sseLine(data, "approval")
        : sseLine({ type: "data-approval", id: approval.id, data }),
    );
  };
  const forget = approvals.onChange((change) => {
    if (change.approval.sessionId !== run.sessionId) return;
    show(
      change.approval,
      change.type === "asked" ? "waiting" : (settledAs[change.answer?.type ?? ""] ?? "withdrawn"),
    );
  });
  for (const approval of approvals.pending())
    if (approval.sessionId === run.sessionId) show(approval, "waiting");
  let isLeft = false;
  const pump = (async () => {
    for await (const line of lines) {
      if (isLeft) return;
      queue.push(line);
    }
  })().finally(() => queue.end());
  try {
    yield* queue;
    await pump;
  } finally {
    isLeft = true;
    forget();
    pump.catch(() => undefined);
  }
}

const settledAs: Readonly<Record<string, ApprovalPart["state"]>> = {
  allow: "allowed",
  deny: "denied",
  "deny-and-stop": "denied",
};

function sseLine(data: unknown, event?: string): string {
  return `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;
}

async function* eventLines(run: ShownRun, { partial = true }: ResponseOptions): AsyncGenerator<string> {
  try {
    for await (const event of run.events)
      if (partial || event.type !== "model-streamed") yield sseLine(event, event.type);
    yield sseLine(await run.result, "result");
  } catch (error) {
    yield sseLine(describeError(error), "error");
  }
}

function describeError(error: unknown): { readonly code: string; readonly message: string } {
  if (isRetinueError(error)) return { code: error.code, message: error.message };
  // What is inside an unexpected error is for the log of the server, not for a page.
  return { code: "internal", message: "The run failed." };
}

/** A child as a page shows it, while it is followed. */
type Draft<T> = { -readonly [Key in keyof T]: T[Key] };

async function* uiLines(run: ShownRun, { partial = true }: ResponseOptions): AsyncGenerator<string> {
  const children = new Map<string, Draft<AgentPart>>();
  const open = new Map<number, { readonly kind: "text" | "reasoning"; readonly id: string }>();
  const calls = new Set<string>();
  let answers = 0;
  let isInStep = false;
  const closeParts = function* (): Generator<string> {
    for (const { kind, id } of open.values()) yield sseLine({ type: `${kind}-end`, id });
    open.clear();
  };
  const piece = function* (kind: "text" | "reasoning", index: number, delta: string): Generator<string> {
    let part = open.get(index);
    if (part === undefined) {
      part = { kind, id: `${kind}-${answers}-${index}` };
      open.set(index, part);
      yield sseLine({ type: `${kind}-start`, id: part.id });
    }
    yield sseLine({ type: `${kind}-delta`, id: part.id, delta });
  };

  yield sseLine({ type: "start", messageId: run.id });
  try {
    for await (const event of run.events) {
      if (event.agentId !== mainAgentId && event.parentId !== undefined) {
        const shown = showChild(children, event);
        if (shown !== undefined) yield sseLine({ type: "data-agent", id: shown.agentId, data: { ...shown } });
        continue;
      }
      switch (event.type) {
        case "turn-started":
          if (isInStep) yield sseLine({ type: "finish-step" });
          isInStep = true;
          yield sseLine({ type: "start-step" });
          break;
        case "model-streamed":
          if (!partial) break;
          if (event.event.type === "text-delta") yield* piece("text", event.event.index, event.event.text);
          if (event.event.type === "thinking-delta")
            yield* piece("reasoning", event.event.index, event.event.text);
          break;
        case "model-retried":
        case "model-fell-back":
          // What was shown cannot be taken back; the next attempt is a part of its own.
          yield* closeParts();
          answers += 1;
          break;
        case "assistant-answered": {
          if (open.size === 0)
            for (const [index, block] of event.message.content.entries()) {
              if (block.type === "text" && block.text !== "") yield* piece("text", index, block.text);
              if (block.type === "thinking" && block.thinking !== "")
                yield* piece("reasoning", index, block.thinking);
            }
          yield* closeParts();
          answers += 1;
          for (const block of event.message.content) {
            if (block.type !== "tool_use") continue;
            calls.add(block.id);
            const { id: toolCallId, name: toolName, input } = block;
            yield sseLine({ type: "tool-input-available", toolCallId, toolName, input, dynamic: true });
          }
          break;
        }
        case "call-finished": {
          const toolCallId = event.call.id;
          if (!calls.has(toolCallId)) break;
          const output = textOfContent(event.content);
          if (event.denied !== undefined || event.isError)
            yield sseLine({
              type: "tool-output-error",
              toolCallId,
              errorText: event.denied ?? output,
              dynamic: true,
            });
          else yield sseLine({ type: "tool-output-available", toolCallId, output, dynamic: true });
          break;
        }
        default:
      }
    }
    yield* closeParts();
    if (isInStep) yield sseLine({ type: "finish-step" });
    const { status, reason, error, sessionId, totals, models } = await run.result;
    if (status === "stopped") yield sseLine({ type: "abort", reason });
    if (status === "failed") yield sseLine({ type: "error", errorText: error ?? reason });
    const finishReason = finishReasons[status];
    const messageMetadata: UiMetadata = { sessionId, status, reason, totals, models };
    yield sseLine({ type: "finish", finishReason, messageMetadata });
  } catch (error) {
    yield sseLine({ type: "error", errorText: describeError(error).message });
  }
  yield "data: [DONE]\n\n";
}

const finishReasons = { completed: "stop", partial: "length", failed: "error", stopped: "other" } as const;

function showChild(children: Map<string, Draft<AgentPart>>, event: AgentEvent): Draft<AgentPart> | undefined {
  const { agentId, parentId, agentType } = event;
  const shown: Draft<AgentPart> = children.get(agentId) ?? {
    agentId,
    parentId,
    agentType,
    status: "running",
    activity: "starting",
    text: "",
    turns: 0,
    toolUses: 0,
  };
  children.set(agentId, shown);
  switch (event.type) {
    case "turn-started":
      shown.turns += 1;
      shown.status = "running";
      shown.activity = "thinking";
      return shown;
    case "call-started":
      shown.activity = event.call.name;
      return shown;
    case "call-finished":
      shown.toolUses += 1;
      return undefined;
    case "assistant-answered":
      // A call that waits for a person has not started yet.
      shown.activity =
        event.message.content.find((block) => block.type === "tool_use")?.name ?? shown.activity;
      shown.text = textOfContent(event.message.content.filter(({ type }) => type === "text")) || shown.text;
      return shown;
    case "run-idled":
      shown.status = "idle";
      return shown;
    case "run-ended":
      shown.status = event.ending.status;
      shown.activity = "";
      shown.text = event.ending.text || shown.text;
      return shown;
    default:
      return undefined;
  }
}

function textOfContent(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .flatMap((block) =>
      typeof Object(block)["text"] === "string" ? [Object(block)["text"]] : [`[${Object(block)["type"]}]`],
    )
    .join("\n");
}
