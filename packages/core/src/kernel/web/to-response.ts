import type { AgentEvent } from "../../conversation/agent-event.ts";
import type { RunResult } from "../run-handle.ts";
import type { ApprovalQueue, PendingApproval } from "./create-approval-queue.ts";

export interface ResponseOptions {
  /**
   * `events`, the default: each event of the run as a server-sent event, at last `result` or `error`. `ui-messages`: the UI message
   * stream of the AI SDK, for `useChat`; children are parts `data-agent`, questions parts `data-approval`.
   */
  readonly format?: "events" | "ui-messages" | undefined;
  readonly status?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The approver of the run: its questions are then part of the stream. */
  readonly approvals?: Pick<ApprovalQueue, "pending" | "onChange"> | undefined;
  /** False: pieces of answers are left out, and each answer comes whole. */
  readonly partial?: boolean | undefined;
}

/** A child as the part `data-agent` of a message shows it: the newest takes the place of those before. */
export interface AgentPart {
  readonly agentId: string;
  readonly parentId?: string;
  readonly agentType?: string;
  readonly status: "running" | "idle" | RunResult["status"];
  /** What it does now: `thinking`, or the name of a tool; empty at its end. */
  readonly activity: string;
  /** Its last answer. */
  readonly text: string;
  readonly turns: number;
  readonly toolUses: number;
}

/** A question as the part `data-approval` of a message shows it. */
export interface ApprovalPart extends PendingApproval {
  readonly state: "waiting" | "allowed" | "denied" | "withdrawn";
}

/** The data parts of a message, for `UIMessage<UiMetadata, UiParts>` of the AI SDK. */
export type UiParts = { agent: AgentPart; approval: ApprovalPart };

/** What is reported about a message at its end. */
export interface UiMetadata
  extends Pick<RunResult, "sessionId" | "status" | "reason" | "totals" | "models"> {}

/** What a response shows of a run. */
export interface ShownRun {
  readonly id: string;
  readonly sessionId: string;
  readonly events: AsyncIterable<AgentEvent>;
  readonly result: Promise<RunResult>;
}

/** A run as a streamed HTTP response. A reader that leaves does not end the run: give the run the request's signal for that. */
export function toResponse(run: ShownRun, options: ResponseOptions = {}): Response {
  const headers = new Headers(options.headers);
  headers.set("content-type", "text/event-stream; charset=utf-8");
  headers.set("cache-control", "no-cache, no-transform");
  // Proxies that gather a response before they pass it on would hide what happens.
  headers.set("x-accel-buffering", "no");
  if (options.format === "ui-messages") headers.set("x-vercel-ai-ui-message-stream", "v1");
  const encoder = new TextEncoder();
  let lines: AsyncIterator<string> | undefined;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (lines === undefined) {
        // What makes the lines is loaded only by programs that serve pages.
        const { responseLines } = await import("./response-lines.ts");
        lines = responseLines(run, options)[Symbol.asyncIterator]();
      }
      const { done, value } = await lines.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await lines?.return?.();
    },
  });
  return new Response(body, { status: options.status ?? 200, headers });
}
