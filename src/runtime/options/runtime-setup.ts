import type { AgentDefinition } from "../../definitions/agent-definition.ts";
import type { AgentInput } from "../../definitions/define-agent.ts";
import type { HookFunction } from "../../hooks/run-handler.ts";
import type { Model } from "../../model/model.ts";
import type { Executor } from "../../tasks/executor.ts";
import type { Tool } from "../../tools/tool.ts";
import type { LiveControls } from "../agent/live-controls.ts";
import type { PortableOptions } from "../teams/portable-options.ts";
import type { RuntimeOptions, SessionOptions } from "./runtime-options.ts";

/** Options that have another name or shape once they were checked. */
type Reshaped =
  | "agents"
  | "tools"
  | "model"
  | "env"
  | "hooks"
  | "onWarning"
  | "settings"
  | "mcpServers"
  | "concurrency"
  | "overflow";

/** The options of a runtime after they were checked and brought into one shape. */
export interface RuntimeSetup extends Omit<RuntimeOptions, Reshaped> {
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly agents?: readonly (AgentDefinition | AgentInput)[];
  /** Tools of the program, beside the built-in ones. */
  readonly extraTools?: readonly Tool[];
  /** Serves every session in place of what settings and the environment say. */
  readonly model?: Model;
  /** Wraps the model of every agent, for limits that reach beyond this process. */
  readonly wrapModel?: (model: Model) => Model;
  /** Carries children out elsewhere. */
  readonly wrapExecutor?: (local: Executor) => Executor;
  /** The key under which a call is known outside this process. */
  readonly idempotencyKey?: (callId: string) => string | undefined;
  readonly settings?: string;
  /** Of the settings files of the person and the project, only what restricts counts. */
  readonly restrictionsOnly?: boolean;
  readonly mcpServers?: Readonly<Record<string, unknown>>;
  readonly hooks?: readonly HookFunction[];
  readonly notice?: (text: string) => void;
  /** What members of a team in processes of their own are started with. */
  readonly portable?: PortableOptions;
  /** What the host of a session changes while it runs. */
  readonly live?: LiveControls;
}

/** The options of a session after they were checked and brought into one shape. */
export interface SessionSetup<Output = unknown> extends Omit<SessionOptions<Output>, "model" | "tools"> {
  /** An alias, an id, or `provider/model`. */
  readonly model?: string;
  /** Which built-in tools exist; absent means all. */
  readonly tools?: readonly string[];
}
