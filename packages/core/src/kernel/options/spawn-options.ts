import type { SpawnRequest } from "../../planning/agent-request.ts";
import type { ModelInput, SessionOptions } from "./runtime-options.ts";
import type { OutputSchema } from "./typed-output.ts";

/** The options of a child of a session; its rights come from the session. */
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
      | "verify"
      | "name"
      | "isolation"
      | "cwd"
      | "env"
      | "timeout"
      | "effort"
      | "systemPrompt"
      | "appendSystemPrompt"
    >
  > {
  readonly permissionMode?: NonNullable<SpawnRequest["mode"]> | undefined;
  /** The schema that the result must match. */
  readonly output?: OutputSchema<Output> | undefined;
  /** Stops the child. */
  readonly signal?: AbortSignal | undefined;
}

/** The options of a child that the runtime starts: also the rights of the session that is opened for it. */
export interface SpawnOptions<Output = unknown>
  extends Omit<ChildOptions<Output>, "model" | "cwd" | "env">,
    Pick<SessionOptions, (typeof childSessionKeys)[number]> {
  readonly model?: ModelInput | undefined;
}

/** The options that belong to the session of a child rather than to the child. */
export const childSessionKeys = [
  "skipPermissions",
  "tools",
  "allowedTools",
  "disallowedTools",
  "maxBudgetUsd",
  "permissionPromptTool",
  "cwd",
  "env",
  "trusted",
  "canUseTool",
  "approver",
  "hooks",
] as const;

/** Undefined where no option concerns the session, so that children can share one. */
export function sessionOptionsOf(
  options: SpawnOptions,
  { hasModel }: { readonly hasModel: boolean },
): SessionOptions | undefined {
  const given: [string, unknown][] = childSessionKeys.map((key) => [key, options[key]]);
  const { model } = options;
  // A model that the runtime was given answers for all, unless a session has one of its own.
  if (hasModel || typeof model !== "string") given.push(["model", model]);
  const fields = given.filter(([, value]) => value !== undefined);
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}

/** A child as a program asks for it; what belongs to a session of its own is left to that. */
export function spawnRequestOf(
  agentType: string,
  prompt: string,
  options: SpawnOptions | ChildOptions,
  ofSession: readonly string[] = [],
): SpawnRequest {
  const { permissionMode, output: _output, signal: _signal, model, ...given } = options;
  const own = Object.entries({ ...given, ...(typeof model === "string" ? { model } : {}) }).filter(
    ([key, value]) => !ofSession.includes(key) && value !== undefined,
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
