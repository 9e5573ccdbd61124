import type { VerifyInput } from "@retinue/config/settings/verify-checks.ts";

/** What a script asks the runtime for, or reports to it. Plain JSON: it passes between processes. */
export type ScriptMessage =
  | { readonly type: "agent"; readonly id: number; readonly prompt: string; readonly options: StepOptions }
  | {
      readonly type: "workflow";
      readonly id: number;
      /** The name of a saved workflow, or a file. */
      readonly name?: string;
      readonly scriptPath?: string;
      /** JSON; absent means undefined. */
      readonly args?: string;
    }
  | { readonly type: "phase"; readonly title: string }
  | { readonly type: "log"; readonly text: string }
  /** What `parallel` and `pipeline` made null of. */
  | { readonly type: "failure"; readonly text: string }
  /** The body has returned; `value` is JSON, absent where it returned nothing. */
  | { readonly type: "returned"; readonly value?: string }
  | ({ readonly type: "threw" } & ScriptError);

/** An error as it passes between a script and the runtime. */
export interface ScriptError {
  readonly name: string;
  readonly message: string;
  /** Where in the script, where that is known. */
  readonly line?: number;
}

/** What a script says about one step; what it says besides is ignored. */
export interface StepOptions {
  readonly label?: string;
  readonly phase?: string;
  readonly schema?: Readonly<Record<string, unknown>>;
  readonly model?: string;
  readonly effort?: string;
  readonly isolation?: string;
  readonly agentType?: string;
  /** Commands that must pass after the step. */
  readonly verify?: VerifyInput;
}

/** What the runtime answers to `agent` and `workflow`. */
export interface ScriptAnswer {
  readonly id: number;
  /** JSON; absent means undefined. */
  readonly value?: string;
  readonly error?: ScriptError;
  /** Output tokens taken so far, for `budget`. */
  readonly spent: number;
}

/** How a script begins. */
export interface ScriptStart {
  /** JSON; absent means undefined. */
  readonly args?: string;
  readonly total: number | null;
  readonly spent: number;
}
