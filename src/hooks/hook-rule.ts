export type HookHandlerType = "command" | "http" | "prompt" | "agent" | "mcp_tool";

/** One thing to run when an event fires. Fields that the type does not use are absent. */
export interface HookHandler {
  readonly type: HookHandlerType;
  readonly command?: string;
  readonly args?: readonly string[];
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly allowedEnvVars?: readonly string[];
  readonly prompt?: string;
  readonly model?: string;
  readonly server?: string;
  readonly tool?: string;
  readonly input?: Readonly<Record<string, unknown>>;
  /** A permission rule that narrows a tool event further. */
  readonly if?: string;
  /** Seconds, as written. */
  readonly timeout?: number;
  readonly async?: boolean;
  /** Like `async`, and its exit with code 2 notifies the model. */
  readonly asyncRewake?: boolean;
  readonly shell?: "bash" | "powershell";
  readonly onFailure?: "continue" | "block";
  readonly statusMessage?: string;
  readonly once?: boolean;
}

/** One handler with the event and matcher it is under; an absent matcher means everything. */
export interface HookRule {
  readonly event: string;
  readonly matcher?: string;
  readonly handler: HookHandler;
}
