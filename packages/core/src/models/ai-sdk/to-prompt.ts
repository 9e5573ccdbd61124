import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import {
  type AssistantMessage,
  type DocumentBlock,
  type ImageBlock,
  resultText,
  type TextBlock,
  type ToolResultBlock,
  type UserMessage,
} from "../../conversation/message.ts";
import type { ModelRequest } from "../model.ts";
import { sentCallInput } from "../read-call-input.ts";
import { originOf } from "./create-answer-reader.ts";

/** The generations of the AI SDK's provider interface that are spoken here; a newer one is spoken to as the newest. */
export type InterfaceVersion = "v2" | "v3" | "v4";

export interface PromptOptions {
  readonly version: InterfaceVersion;
  readonly provider: string;
  readonly takesResultFiles: boolean;
}

/** The conversation as messages of the AI SDK's provider interface. */
export function toPrompt(request: ModelRequest, options: PromptOptions): readonly JsonRecord[] {
  const system = request.system.filter((part) => part !== "").join("\n\n");
  const calls = request.messages.flatMap((message) =>
    message.role === "assistant" ? message.content.filter((block) => block.type === "tool_use") : [],
  );
  const names = new Map(calls.map(({ id, name }) => [String(id), String(name)]));
  return [
    ...(system === "" ? [] : [{ role: "system", content: system }]),
    ...request.messages.flatMap((message) =>
      message.role === "assistant"
        ? assistantMessage(message, options)
        : userMessages(message, names, options),
    ),
  ];
}

/** Thinking goes back only to the provider that thought it; its signature means nothing to others. */
function assistantMessage(message: AssistantMessage, { provider }: PromptOptions): readonly JsonRecord[] {
  const origin = originOf(message, provider);
  const content = message.content.flatMap((block): readonly JsonRecord[] => {
    const options = origin?.get(block);
    const extra = options === undefined ? {} : { providerOptions: options };
    switch (block.type) {
      case "text":
        return block.text === "" ? [] : [{ type: "text", text: block.text, ...extra }];
      case "thinking":
        return origin === undefined ? [] : [{ type: "reasoning", text: block.thinking, ...extra }];
      case "tool_use": {
        const input = sentCallInput(block.input);
        return [{ type: "tool-call", toolCallId: block.id, toolName: block.name, input, ...extra }];
      }
      default:
        return [];
    }
  });
  return content.length === 0 ? [] : [{ role: "assistant", content }];
}

function userMessages(
  { content }: UserMessage,
  names: ReadonlyMap<string, string>,
  options: PromptOptions,
): readonly JsonRecord[] {
  const blocks = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  const results = blocks.filter((block) => block.type === "tool_result");
  const others = blocks.filter((block) => block.type !== "tool_result");
  const lifted = options.takesResultFiles
    ? []
    : results.flatMap((result) => {
        const files = filesOf(result).flatMap((file) => userPart(file, options));
        if (files.length === 0) return [];
        const name = names.get(result.tool_use_id) ?? "the tool";
        return [{ type: "text", text: `What ${name} returned for call ${result.tool_use_id}:` }, ...files];
      });
  const said = [...lifted, ...others.flatMap((block) => userPart(block, options))];
  return [
    ...(results.length === 0
      ? []
      : [{ role: "tool", content: results.map((result) => resultPart(result, names, options)) }]),
    ...(said.length === 0 ? [] : [{ role: "user", content: said }]),
  ];
}

function userPart(
  block: TextBlock | ImageBlock | DocumentBlock,
  options: PromptOptions,
): readonly JsonRecord[] {
  if (block.type === "text") return block.text === "" ? [] : [{ type: "text", text: block.text }];
  const { source } = block;
  const title = block.type === "document" && block.title !== undefined ? { filename: block.title } : {};
  if (source.type === "base64") {
    const data = options.version === "v4" ? { type: "data", data: source.data } : source.data;
    return [{ type: "file", mediaType: source.media_type, data, ...title }];
  }
  if (!URL.canParse(source.url)) return [];
  const address = new URL(source.url);
  const data = options.version === "v4" ? { type: "url", url: address } : address;
  return [{ type: "file", mediaType: "image/*", data }];
}

type ResultFile = ImageBlock | DocumentBlock;

function filesOf({ content }: ToolResultBlock): readonly ResultFile[] {
  return typeof content === "string"
    ? []
    : content.filter((block) => block.type === "image" || block.type === "document");
}

function resultPart(
  result: ToolResultBlock,
  names: ReadonlyMap<string, string>,
  options: PromptOptions,
): JsonRecord {
  const files = filesOf(result);
  const text = textOfResult(result, options.takesResultFiles ? 0 : files.length);
  const part = {
    type: "tool-result",
    toolCallId: result.tool_use_id,
    toolName: names.get(result.tool_use_id) ?? "unknown",
  };
  if (files.length === 0 || !options.takesResultFiles) {
    return { ...part, output: { type: result.is_error ? "error-text" : "text", value: text } };
  }
  const said = text === "" ? [] : [{ type: "text", text }];
  const value = [
    ...said,
    ...files.flatMap(({ source }): readonly JsonRecord[] => {
      if (source.type === "url") {
        if (options.version === "v2") return [{ type: "text", text: source.url }];
        if (options.version === "v3") return [{ type: "image-url", url: source.url }];
        return [{ type: "file", mediaType: "image", data: { type: "url", url: new URL(source.url) } }];
      }
      const { data, media_type: mediaType } = source;
      if (options.version === "v2") return [{ type: "media", data, mediaType }];
      if (options.version === "v4") return [{ type: "file", mediaType, data: { type: "data", data } }];
      return [{ type: mediaType.startsWith("image/") ? "image-data" : "file-data", data, mediaType }];
    }),
  ];
  return { ...part, output: { type: "content", value } };
}

function textOfResult({ content }: ToolResultBlock, liftedCount: number): string {
  const text = resultText(content);
  if (liftedCount === 0) return text;
  const note = "[The file of this result is in the message that follows.]";
  return text === "" ? note : `${text}\n${note}`;
}
