import type { ZodType } from "zod";
import type { RunEnding } from "../../conversation/run-event.ts";
import { defineTool, type Tool } from "../../tools/tool.ts";
import type { Capability } from "../agent/open-agent.ts";

/** A schema of zod 4, whose type the result has; of zod 3 or a library that follows Standard Schema; or a JSON Schema. */
export type OutputSchema<Output = unknown> =
  | ZodType<Output>
  | { readonly "~standard": object }
  | Readonly<Record<string, unknown>>;

/** Lets a run hand in a value that was checked against a schema, and counts how often it failed to. */
export interface TypedOutput {
  readonly tool: Tool;
  /** Forgets the value and the count of the run before. */
  begin(): void;
  /** The value handed in, once there is one, and as it was before the schema made something of it. */
  value(): { readonly output: unknown; readonly input: unknown } | undefined;
  /** Notes that the agent stopped without handing in a value. */
  miss(): void;
  /** Whether the agent has failed more often than it may. */
  hasGivenUp(): boolean;
  /** Whether a text will do instead, because the agent was reminded and that is done once only. */
  isWaived(): boolean;
}

/**
 * What a typed result adds to an agent: the tool that takes it, which needs no permission, since it changes nothing outside,
 * and a reminder for an agent that stops without a value that matches.
 */
export function outputCapability(output: TypedOutput): Capability {
  return {
    tools: [output.tool],
    beforeCall: (next) => async (request, options) =>
      request.tool === output.tool ? { type: "allowed", input: request.input } : next(request, options),
    isFinished: () => output.value() !== undefined || output.hasGivenUp(),
    handsInValue: true,
    async beforeEnd() {
      if (output.value() !== undefined || output.hasGivenUp()) return undefined;
      output.miss();
      if (output.hasGivenUp() || output.isWaived()) return undefined;
      return { role: "user", content: [{ type: "text", text: outputReminder }] };
    },
  };
}

/** What a run ends as that was asked for a typed result: with the value, or failed where there is none. */
export function endingWithOutput(ending: RunEnding, output: TypedOutput | undefined): RunEnding {
  const value = output?.value();
  if (value !== undefined) return { ...ending, output: value.output };
  if (output === undefined || ending.status !== "completed" || output.isWaived()) return ending;
  const error = "The agent did not return a result matching the schema.";
  return { ...ending, status: "failed", reason: "max_structured_output_retries", error };
}

/** The typed outputs that the children of a session were asked for, by agent id. */
export interface ChildOutputs {
  ask(
    agentId: string,
    schema: OutputSchema,
    own?: Pick<TypedOutputOptions, "remindsOnce">,
  ): Promise<TypedOutput>;
  of(agentId: string): TypedOutput | undefined;
  forget(agentId: string): void;
}

export function createChildOutputs(options: { readonly maxRetries?: number | undefined }): ChildOutputs {
  const outputs = new Map<string, TypedOutput>();
  return {
    async ask(agentId, schema, own) {
      const output = await createTypedOutput(schema, { ...options, ...own });
      outputs.set(agentId, output);
      return output;
    },
    of: (agentId) => outputs.get(agentId),
    forget: (agentId) => void outputs.delete(agentId),
  };
}

export const outputToolName = "StructuredOutput";

/** Sent to an agent that stopped without handing in its value. */
export const outputReminder = `Hand in your result now by calling ${outputToolName}; text alone is not accepted.`;

export interface TypedOutputOptions {
  readonly maxRetries?: number | undefined;
  /** Values that do not match are counted, and not what was forgotten; the last of them is no retry. */
  readonly remindsOnce?: boolean | undefined;
}

export async function createTypedOutput(
  schema: OutputSchema,
  { maxRetries = 5, remindsOnce = false }: TypedOutputOptions = {},
): Promise<TypedOutput> {
  // What reads schemas takes long to load, and few runs have one.
  const { readOutputSchema } = await import("./read-output-schema.ts");
  const { form, check } = readOutputSchema(schema);
  // Models are asked for an object; any other type travels as its only field.
  const isObject = form["type"] === "object";
  let given: ReturnType<TypedOutput["value"]>;
  let failures = 0;
  let misses = 0;
  const tool = defineTool<unknown>({
    name: outputToolName,
    description:
      "Hands in the final result of this run, in the form the caller asked for. Call it once, at the end.",
    effect: "coordinate",
    inputSchema: isObject ? form : wrap(form),
    async call(handedIn) {
      const input = isObject ? handedIn : Reflect.get(Object(handedIn), "value");
      const checked = await check(input);
      if (checked.type === "uncheckable") {
        failures = Number.POSITIVE_INFINITY;
        return { content: checked.reason, isError: true };
      }
      if (checked.type === "invalid") {
        failures += 1;
        return { content: `${checked.reason} Correct it and call ${outputToolName} again.`, isError: true };
      }
      given = { output: checked.value, input };
      return { content: "The result was accepted.", data: checked.value };
    },
  });
  return {
    tool,
    begin() {
      given = undefined;
      failures = 0;
      misses = 0;
    },
    value: () => given,
    miss() {
      misses += 1;
      if (!remindsOnce) failures += 1;
    },
    hasGivenUp: () => (remindsOnce ? failures > 0 && failures >= maxRetries : failures > maxRetries),
    isWaived: () => remindsOnce && misses > 1,
  };
}

/** References inside a schema start at its root, so what they point to stays there. */
function wrap(form: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { $defs, definitions, ...value } = form;
  return {
    type: "object",
    properties: { value },
    required: ["value"],
    ...($defs === undefined ? {} : { $defs }),
    definitions,
  };
}
