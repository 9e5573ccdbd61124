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

/** Checks a program's definition like a file's; a bad one is a mistake in the program and throws a Error. */
export function defineAgent(input: AgentInput): AgentDefinition {
  const { name, prompt, onEnd, ...fields } = input;
  const text = typeof prompt === "string" ? prompt : "";
  const { definition, diagnostics } = readDefinitionObject(
    String(name),
    { ...fields, prompt: text },
    { scope: "session" },
  );
  const error = diagnostics.find((diagnostic) => diagnostic.severity === "error");
  if (definition === undefined || error !== undefined) {
    const message = error?.message ?? diagnostics[0]?.message ?? "It cannot be read.";
    const advice = error?.advice ?? diagnostics[0]?.advice;
    throw new RetinueError(
      "invalid-definition",
      `The agent ${JSON.stringify(name)} is not usable: ${message}`,
      advice === undefined ? {} : { advice },
    );
  }
  const behaviour = {
    ...(typeof prompt === "function" ? { computePrompt: prompt } : {}),
    ...(onEnd === undefined ? {} : { onEnd }),
  };
  return Object.keys(behaviour).length === 0 ? definition : { ...definition, behaviour };
}
