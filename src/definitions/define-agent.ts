import type { Diagnostic } from "../foundation/diagnostic.ts";
import { isRecord, shown } from "../foundation/json-record.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import type { HookRule } from "../hooks/read-hooks.ts";
import type { AgentDefinition, AgentEnding, PromptContext } from "./agent-definition.ts";
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
  > {
  readonly name: string;
  readonly description: string;
  /** A text, or a function that makes it when the agent is started. */
  readonly prompt: string | ((context: PromptContext) => string | Promise<string>);
  readonly tools?: readonly string[] | string;
  readonly disallowedTools?: readonly string[] | string;
  readonly skills?: readonly string[] | string;
  readonly mcpServers?: readonly (string | Readonly<Record<string, unknown>>)[];
  /** As in settings.json. */
  readonly hooks?: Readonly<Record<string, unknown>> | readonly HookRule[];
  /** Called once when a run of this agent has ended, however it ended. */
  readonly onEnd?: (ending: AgentEnding) => void | Promise<void>;
}

/** Warnings about what was understood all the same. Any other one says that something written has no effect. */
const understood: ReadonlySet<string> = new Set([
  "misspelt-key",
  "empty-tools",
  "tools-word",
  "list-shaped-hooks",
  // Starting it is refused.
  "unknown-isolation",
]);

/**
 * Checks a program's definition like a file's, and more strictly: in a file a field that cannot be read is a warning, in a
 * program it is a mistake that no one would hear of, so it throws.
 */
export function defineAgent(input: AgentInput): AgentDefinition {
  if (!isRecord(input))
    throw unusable(
      undefined,
      `It must be an object with name, description and prompt, but is ${shown(input)}.`,
    );
  const { name, prompt, onEnd, ...fields } = input;
  if (typeof prompt !== "string" && typeof prompt !== "function")
    throw unusable(name, `Its prompt must be a text or a function, but is ${shown(prompt)}.`);
  if (onEnd !== undefined && typeof onEnd !== "function")
    throw unusable(name, `Its onEnd must be a function, but is ${shown(onEnd)}.`);
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
  const behaviour = {
    ...(typeof prompt === "function" ? { computePrompt: prompt } : {}),
    ...(onEnd === undefined ? {} : { onEnd }),
  };
  return Object.keys(behaviour).length === 0 ? definition : { ...definition, behaviour };
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
