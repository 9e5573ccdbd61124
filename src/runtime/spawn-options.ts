import type { SpawnRequest } from "../planning/spawn-request.ts";
import type { SessionOptions } from "./runtime-options.ts";
import type { OutputSchema } from "./typed-output.ts";

/** What is said about a child of a session; its rights come from the session. */
export interface ChildOptions<Output = unknown>
  extends Partial<
    Pick<
      SpawnRequest,
      | "description"
      | "model"
      | "resume"
      | "keepTools"
      | "background"
      | "maxTurns"
      | "limits"
      | "name"
      | "isolation"
      | "effort"
    >
  > {
  readonly permissionMode?: NonNullable<SpawnRequest["mode"]>;
  /** The schema that the result must match. */
  readonly output?: OutputSchema<Output>;
  /** Stops the child. */
  readonly signal?: AbortSignal;
}

/** What is said about a child that the runtime starts: also the rights of the session that is opened for it. */
export interface SpawnOptions<Output = unknown>
  extends ChildOptions<Output>,
    Pick<
      SessionOptions,
      | "skipPermissions"
      | "tools"
      | "allowedTools"
      | "disallowedTools"
      | "maxBudgetUsd"
      | "permissionPromptTool"
    > {}

/** The options that belong to the session of a child rather than to the child. */
const sessionKeys: readonly string[] = [
  "skipPermissions",
  "tools",
  "allowedTools",
  "disallowedTools",
  "maxBudgetUsd",
  "permissionPromptTool",
];

/** Undefined where nothing is said about the session, so that children can share one. */
export function sessionOptionsOf(options: SpawnOptions): SessionOptions | undefined {
  const given = Object.entries(options).filter(
    ([key, value]) => sessionKeys.includes(key) && value !== undefined,
  );
  return given.length === 0 ? undefined : Object.fromEntries(given);
}

/** A child as a program asks for it. */
export function spawnRequestOf(agentType: string, prompt: string, options: ChildOptions): SpawnRequest {
  const { permissionMode, output: _output, signal: _signal, ...given } = options;
  const own = Object.entries(given).filter(
    ([key, value]) => !sessionKeys.includes(key) && value !== undefined,
  );
  return {
    description: describeTask(agentType, prompt),
    ...Object.fromEntries(own),
    ...(permissionMode === undefined ? {} : { mode: permissionMode }),
    agentType,
    prompt,
    origin: "program",
  };
}

/** A few words for people, where the program gave none. */
export function describeTask(agentType: string, prompt: string): string {
  const words = prompt.trim().split(/\s+/).slice(0, 6).join(" ");
  return `${agentType}: ${words.slice(0, 60)}`;
}
