import { checkArgument } from "@retinue/base/foundation/check-arguments.ts";
import type { LoopTool } from "./tools-for-loops.ts";
import { loopTools } from "./tools-for-loops.ts";

/** A tool as the Vercel AI SDK takes it in `tools`, without depending on that package. */
export interface AiSdkTool {
  readonly description: string;
  readonly inputSchema: AiSdkSchema;
  /** Resolves with the text for the model; rejects with it where the call failed, as that SDK expects. */
  execute(
    input: unknown,
    options?: { readonly toolCallId?: string; readonly abortSignal?: AbortSignal | undefined },
  ): Promise<string>;
}

/** Retinue checks the input itself and reports to the model what it expected, so every value is let through here. */
interface AiSdkSchema {
  readonly jsonSchema: Readonly<Record<string, unknown>>;
  readonly validate: undefined;
  /** What its types ask for. */
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "retinue";
    readonly validate: (value: unknown) => { readonly value: unknown };
  };
}

/** By this mark the SDK knows a JSON Schema from a schema library's object. */
const schemaMark = Symbol.for("vercel.ai.schema");

export function toAiSdkTools(tools: readonly LoopTool[]): Record<string, AiSdkTool> {
  checkArgument("The first argument of toAiSdkTools()", loopTools, tools);
  return Object.fromEntries(tools.map((tool) => [tool.name, adapt(tool)]));
}

function adapt({ description, inputSchema, call }: LoopTool): AiSdkTool {
  return {
    description,
    inputSchema: schemaOf(inputSchema),
    async execute(input, { toolCallId, abortSignal } = {}) {
      const { text, isError } = await call(input, { signal: abortSignal, callId: toolCallId });
      if (isError) throw new Error(text);
      return text;
    },
  };
}

function schemaOf(jsonSchema: AiSdkSchema["jsonSchema"]): AiSdkSchema {
  const marked = {
    [schemaMark]: true,
    jsonSchema,
    validate: undefined,
    "~standard": { version: 1, vendor: "retinue", validate: (value: unknown) => ({ value }) },
  } as const;
  return marked;
}
