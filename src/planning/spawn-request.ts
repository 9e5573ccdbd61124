import type { PermissionMode } from "../permissions/permission-mode.ts";

/** What a caller wants of a child, before anything is decided. */
export interface SpawnRequest {
  /** The agent type; absent means `general-purpose`. */
  readonly agentType?: string;
  /** A few words for people. */
  readonly description: string;
  readonly prompt: string;
  readonly model?: string;
  /** The id of an earlier child to go on with. */
  readonly resume?: string;
  readonly background?: boolean;
  readonly maxTurns?: number;
  readonly name?: string;
  readonly mode?: PermissionMode;
  readonly isolation?: string;
  readonly effort?: string | number;
  /** A program's wishes count as they are; a model's only where they do not widen. */
  readonly origin: "model" | "program";
  /** The call that asked for it, when a model did. */
  readonly callId?: string;
}
