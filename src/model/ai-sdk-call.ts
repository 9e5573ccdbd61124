import type { JsonRecord } from "../foundation/json-value.ts";
import { type PromptOptions, toPrompt } from "./ai-sdk-prompt.ts";
import type { ModelRequest } from "./model.ts";

export interface CallShape extends PromptOptions {
  readonly takesEffort: boolean;
  readonly requestOptions: Readonly<Record<string, JsonRecord>>;
}

/** All of a request that the AI SDK's provider interface has a place for. Server tools have none. */
export function toCall(request: ModelRequest, shape: CallShape): JsonRecord {
  const { tools, toolChoice, maxTokens } = request;
  const effort = shape.takesEffort ? effortLevel(request.effort) : undefined;
  const providerOptions = optionsWith(shape, effort);
  return {
    prompt: toPrompt(request, shape),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, inputSchema }) => ({
            type: "function",
            name,
            description,
            inputSchema,
          })),
          toolChoice: choiceOf(toolChoice),
        }),
    ...(effort !== undefined && shape.version === "v4" ? { reasoning: effort } : {}),
    ...(Object.keys(providerOptions).length === 0 ? {} : { providerOptions }),
    includeRawChunks: false,
  };
}

function choiceOf(choice: ModelRequest["toolChoice"]): JsonRecord {
  if (choice === undefined || choice === "auto") return { type: "auto" };
  return choice === "none" ? { type: "none" } : { type: "tool", toolName: choice.tool };
}

/** Before the interface had a place for it, each provider had its own; OpenAI's is the one that most of them share. */
function optionsWith(shape: CallShape, effort: string | undefined): Readonly<Record<string, JsonRecord>> {
  if (effort === undefined || shape.version === "v4") return shape.requestOptions;
  const names = [shape.provider, "openaiCompatible"];
  const hinted = names.map((name) => [name, { ...shape.requestOptions[name], reasoningEffort: effort }]);
  return { ...shape.requestOptions, ...Object.fromEntries(hinted) };
}

/** Levels above `high` are not known everywhere; a number is a share of a hundred. */
function effortLevel(effort: string | number | undefined): string | undefined {
  if (effort === undefined) return undefined;
  if (typeof effort === "string") return ["low", "medium"].includes(effort) ? effort : "high";
  if (effort <= 33) return "low";
  return effort <= 66 ? "medium" : "high";
}
