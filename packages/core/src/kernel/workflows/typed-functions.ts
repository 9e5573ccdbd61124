import type { WorkflowFunctions } from "../../workflows/create-script-functions.ts";
import type { StepOptions } from "../../workflows/script-message.ts";
import { readOutputSchema } from "../options/read-output-schema.ts";
import type { OutputSchema } from "../options/typed-output.ts";

/** The functions of a workflow as a function of a program has them: results have the types of their schemas. */
export interface ProgramFunctions extends Pick<WorkflowFunctions, "phase" | "log" | "workflow" | "budget"> {
  /** Runs one agent; the value for `schema`, or null where the provider failed or a person skipped it. */
  agent<Output>(prompt: unknown, options: TypedStepOptions<Output>): Promise<Output | null>;
  /** Runs one agent; its last text, or null where the provider failed or a person skipped it. */
  agent(prompt: unknown, options?: Omit<StepOptions, "schema">): Promise<string | null>;
  /** Waits for all; one that throws becomes null. */
  parallel<const Thunks extends readonly (() => unknown)[]>(
    thunks: Thunks,
  ): Promise<{ -readonly [Key in keyof Thunks]: Awaited<ReturnType<Thunks[Key]>> | null }>;
  /** Each item through all stages alone; one that throws, or gets null, becomes null. */
  pipeline<Item, One>(
    items: readonly Item[],
    first: Stage<Item, Item, One>,
  ): Promise<(Awaited<One> | null)[]>;
  pipeline<Item, One, Two>(
    items: readonly Item[],
    first: Stage<Item, Item, One>,
    second: Stage<Passed<One>, Item, Two>,
  ): Promise<(Awaited<Two> | null)[]>;
  pipeline<Item, One, Two, Three>(
    items: readonly Item[],
    first: Stage<Item, Item, One>,
    second: Stage<Passed<One>, Item, Two>,
    third: Stage<Passed<Two>, Item, Three>,
  ): Promise<(Awaited<Three> | null)[]>;
  pipeline(
    items: readonly unknown[],
    ...stages: readonly ((previous: never, item: never, index: number) => unknown)[]
  ): Promise<unknown[]>;
}

export interface TypedStepOptions<Output> extends Omit<StepOptions, "schema"> {
  /** Its result has the type of a zod schema; that of a JSON Schema is unknown. */
  readonly schema: OutputSchema<Output>;
}

type Stage<Previous, Item, Result> = (previous: Previous, item: Item, index: number) => Result;

/** What comes out of a stage and into the next one, which is not called with null. */
type Passed<Result> = Exclude<Awaited<Result>, null>;

/** A function of the program that runs as a workflow. */
export type WorkflowFunction<Args = unknown, Result = unknown> = (
  workflow: ProgramFunctions & { readonly args: Args },
) => Result | Promise<Result>;

/** The schemas of a program by the JSON Schemas that its steps are asked by. */
export type StepSchemas = Map<string, OutputSchema>;

/**
 * Steps carry JSON: a schema of a library goes with them as its JSON Schema, and what it makes of the result is made here, also of a
 * result that was taken from the journal.
 */
export function typedFunctions(functions: WorkflowFunctions, schemas: StepSchemas): ProgramFunctions {
  const { agent } = functions;
  const typed = async (prompt: unknown, options?: Partial<TypedStepOptions<unknown>>): Promise<unknown> => {
    const { schema, ...others } = options ?? {};
    if (schema === undefined || schema === null) return agent(prompt, others);
    const { form, check } = readOutputSchema(schema);
    if (form === schema) return agent(prompt, { ...others, schema: form });
    schemas.set(JSON.stringify(form), schema);
    const result = await agent(prompt, { ...others, schema: form });
    if (result === null) return null;
    const checked = await check(result);
    if (checked.type === "valid") return checked.value;
    throw new Error(checked.reason);
  };
  return { ...functions, agent: typed } as ProgramFunctions;
}
