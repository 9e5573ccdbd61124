import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { AssistantBlock, Message, UserBlock } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { listOf, textOfValue } from "./wire.ts";

/** A chat completions body as the request that a model in this program would have got. */
export function readOpenAiRequest(body: JsonRecord): ModelRequest {
  const messages = listOf(body["messages"]);
  const limit = body["max_tokens"] ?? body["max_completion_tokens"];
  return {
    system: messages.filter(({ role }) => isSystem(role)).map(({ content }) => plainText(content)),
    tools: listOf(body["tools"]).map(readTool),
    messages: readMessages(messages.filter(({ role }) => !isSystem(role))),
    ...(typeof limit === "number" ? { maxTokens: limit } : {}),
  };
}

function isSystem(role: unknown): boolean {
  return role === "system" || role === "developer";
}

function readTool(tool: JsonRecord): ModelRequest["tools"][number] {
  const inner = isRecord(tool["function"]) ? tool["function"] : {};
  return {
    name: textOfValue(inner["name"]),
    description: textOfValue(inner["description"]),
    inputSchema: isRecord(inner["parameters"]) ? inner["parameters"] : {},
  };
}

/** Results of tools are messages of their own here and blocks of one user message there. */
function readMessages(messages: readonly JsonRecord[]): readonly Message[] {
  const read: Message[] = [];
  for (const message of messages) {
    const last = read.at(-1);
    if (message["role"] === "assistant") {
      read.push({ role: "assistant", content: assistantBlocks(message) });
      continue;
    }
    const blocks = message["role"] === "tool" ? [resultBlock(message)] : userBlocks(message["content"]);
    if (last?.role !== "user") read.push({ role: "user", content: blocks });
    else read[read.length - 1] = { role: "user", content: [...asBlocks(last.content), ...blocks] };
  }
  return read;
}

function asBlocks(content: string | readonly UserBlock[]): readonly UserBlock[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function assistantBlocks(message: JsonRecord): readonly AssistantBlock[] {
  const thinking = textOfValue(message["reasoning_content"]);
  const text = plainText(message["content"]);
  return [
    ...(thinking === "" ? [] : [{ type: "thinking" as const, thinking, signature: "" }]),
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...listOf(message["tool_calls"]).map((call) => {
      const inner = isRecord(call["function"]) ? call["function"] : {};
      const input = parseOrKeep(textOfValue(inner["arguments"]));
      return {
        type: "tool_use" as const,
        id: textOfValue(call["id"]),
        name: textOfValue(inner["name"]),
        input,
      };
    }),
  ];
}

function resultBlock(message: JsonRecord): UserBlock {
  const id = textOfValue(message["tool_call_id"]);
  return { type: "tool_result", tool_use_id: id, content: plainText(message["content"]) };
}

function userBlocks(content: unknown): readonly UserBlock[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return listOf(content).flatMap((part): readonly UserBlock[] => {
    if (part["type"] === "text") return [{ type: "text", text: textOfValue(part["text"]) }];
    const image = part["image_url"];
    return isRecord(image) ? [imageBlock(textOfValue(image["url"]))] : [];
  });
}

function imageBlock(url: string): UserBlock {
  const [, mediaType, data] = /^data:([^;]+);base64,(.*)$/s.exec(url) ?? [];
  if (mediaType === undefined || data === undefined) return { type: "image", source: { type: "url", url } };
  return { type: "image", source: { type: "base64", media_type: mediaType, data } };
}

function plainText(content: unknown): string {
  if (typeof content === "string") return content;
  return listOf(content)
    .map(({ text }) => textOfValue(text))
    .join("\n");
}

function parseOrKeep(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
