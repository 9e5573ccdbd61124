import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { HookRule } from "../hooks/read-hooks.ts";
import type { AgentDefinition, AgentEnding, PromptContext } from "./agent-definition.ts";
import type { RunnerInput } from "./agent-runner.ts";
import { readDefinitionObject } from "./read-definition-object.ts";

/** A definition made by a program. Lists may be arrays or comma-separated texts, as in files. */
export interface AgentInput
  extends Omit<
    Partial<AgentDefinition>,
    | "prompt"
    | "source"
    | "written"
    | "behaviour"
    | "tools"
    | "disallowedTools"
    | "skills"
    | "hooks"
    | "mcpServers"
    | "runner"
  > {
  readonly name: string;
  readonly description: string;
  /** A text, or a function that makes it when the agent is started. */
  readonly prompt: string | ((context: PromptContext) => string | Promise<string>);
  readonly tools?: readonly string[] | string | undefined;
  readonly disallowedTools?: readonly string[] | string | undefined;
  readonly skills?: readonly string[] | string | undefined;
  readonly mcpServers?: readonly (string | Readonly<Record<string, unknown>>)[] | undefined;
  /** A program of another vendor that does its work, as in a file. */
  readonly runner?: RunnerInput | undefined;
  /** As in settings.json. */
  readonly hooks?: Readonly<Record<string, unknown>> | readonly HookRule[] | undefined;
  /** Called once when a run of this agent has ended, however it ended. */
  readonly onEnd?: ((ending: AgentEnding) => void | Promise<void>) | undefined;
}

/** Warnings about what was understood all the same. Any other one says that something written has no effect. */
const understood: ReadonlySet<string> = new Set([
  "misspelt-key",
  "empty-tools",
  "tools-word",
  "list-shaped-hooks",
  // Starting it is refused.
  "unknown-isolation",
  "variable-not-allowed",
]);

/**
 * Checks a program's definition like a file's, and more strictly: in a file a field that cannot be read is a warning, in a
 * program it is a mistake that would go unnoticed, so it throws.
 */
export function defineAgent(input: AgentInput): AgentDefinition {
  if (!isRecord(input))
    throw unusable(
      undefined,
      `It must be an object with name, description and prompt, but is ${quote(input)}.`,
    );
  const { name, prompt, onEnd, ...fields } = input;
  if (typeof name !== "string")
    throw unusable(undefined, `Its name must be a string, but is ${quote(name)}.`);
  const { description } = fields;
  if (description !== undefined && typeof description !== "string")
    throw unusable(name, `Its description must be a string, but is ${quote(description)}.`);
  for (const [key, value] of Object.entries(fields))
    if (typeof value === "bigint" || typeof value === "symbol")
      throw unusable(name, `Its ${key} must be a value that a file could have, but is ${quote(value)}.`);
  if (typeof prompt !== "string" && typeof prompt !== "function")
    throw unusable(name, `Its prompt must be a string or a function, but is ${quote(prompt)}.`);
  if (onEnd !== undefined && typeof onEnd !== "function")
    throw unusable(name, `Its onEnd must be a function, but is ${quote(onEnd)}.`);
  const text = typeof prompt === "string" ? prompt : "";
  const { definition, diagnostics } = readDefinitionObject(
    String(name),
    { ...fields, prompt: text },
    { scope: "session" },
  );
  const flaw =
    diagnostics.find(({ severity }) => severity === "error") ??
    diagnostics.find((diagnostic) => isFlaw(diagnostic, definition));
  if (definition === undefined || flaw !== undefined) {
    const { message, advice } = flaw ?? diagnostics[0] ?? { message: "It cannot be read." };
    throw unusable(name, message, advice);
  }
  const computePrompt = typeof prompt === "function" ? prompt : undefined;
  if (computePrompt === undefined && onEnd === undefined) return definition;
  return { ...definition, behaviour: { computePrompt, onEnd } };
}

function isFlaw({ severity, code }: Diagnostic, definition: AgentDefinition | undefined): boolean {
  if (code === "unknown-permission-mode") return definition?.permissionMode === undefined;
  return severity === "warning" && !understood.has(code);
}

function unusable(name: unknown, message: string, advice?: string): RetinueError {
  const who = name === undefined ? "An agent" : `The agent ${JSON.stringify(name)}`;
  return new RetinueError(
    "invalid-definition",
    `${who} is not usable: ${message}`,
    advice === undefined ? {} : { advice },
  );
}
