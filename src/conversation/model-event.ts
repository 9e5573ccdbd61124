import type { AssistantBlock, AssistantMessage } from "./message.ts";
import type { StopReason } from "./stop-reason.ts";
import type { Usage } from "./usage.ts";

/**
 * What a model says while it answers. `block-ended` carries the whole block; deltas are only for those who watch.
 * The stream ends with exactly one `message-ended`, or it throws a ModelError. `attempt-failed` says that what came
 * since the last `message-started` is void and the request is made again.
 */
export type ModelEvent =
  /** Said now and then while the request waits for its turn, so that no one takes the silence for a stall. */
  | { readonly type: "request-waiting" }
  | {
      readonly type: "message-started";
      readonly id: string;
      readonly model: string;
      readonly usage?: Usage;
      readonly requestId?: string;
    }
  | { readonly type: "block-started"; readonly index: number; readonly block: AssistantBlock }
  | { readonly type: "text-delta"; readonly index: number; readonly text: string }
  | { readonly type: "thinking-delta"; readonly index: number; readonly text: string }
  | { readonly type: "input-delta"; readonly index: number; readonly json: string }
  | { readonly type: "block-ended"; readonly index: number; readonly block: AssistantBlock }
  | {
      readonly type: "attempt-failed";
      readonly attempt: number;
      readonly maxAttempts: number;
      readonly delayMs: number;
      readonly code: string;
      readonly status?: number;
      readonly message: string;
    }
  | {
      readonly type: "message-ended";
      readonly id: string;
      readonly model: string;
      readonly message: AssistantMessage;
      readonly stopReason: StopReason;
      readonly usage: Usage;
      readonly requestId?: string;
    };
