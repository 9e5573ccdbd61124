import { isRecord, type JsonRecord } from "../foundation/json-value.ts";
import { listOf } from "./wire.ts";

/** What the Messages API refuses with status 400; the mistakes a runtime could make, not all there are. */
export function findAnthropicFlaw(body: JsonRecord): string | undefined {
  const messages = listOf(body["messages"]);
  if (typeof body["model"] !== "string") return "model: Field required";
  if (typeof body["max_tokens"] !== "number") return "max_tokens: Field required";
  if (messages.length === 0) return "messages: at least one message is required";
  if (messages[0]?.["role"] !== "user") return "messages: first message must use the user role";
  return findToolFlaw(body) ?? findMarkFlaw(body) ?? findMessageFlaw(messages);
}

function findToolFlaw(body: JsonRecord): string | undefined {
  const names = listOf(body["tools"]).map(({ name }) => String(name));
  const odd = names.findIndex((name) => !/^[a-zA-Z0-9_-]{1,128}$/.test(name));
  if (odd !== -1) return `tools.${odd}.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`;
  return new Set(names).size < names.length ? "tools: Tool names must be unique." : undefined;
}

function findMarkFlaw(body: JsonRecord): string | undefined {
  const inMessages = listOf(body["messages"]).flatMap(({ content }) => listOf(content));
  const holders = [...listOf(body["tools"]), ...listOf(body["system"]), ...inMessages, body];
  const marked = holders.filter((holder) => isRecord(holder["cache_control"]));
  if (marked.length > 4) {
    return `A maximum of 4 blocks with cache_control may be provided. Found ${marked.length}.`;
  }
  if (marked.some(({ type }) => type === "thinking" || type === "redacted_thinking")) {
    return "cache_control cannot be set for thinking blocks";
  }
  return marked.some(({ type, text }) => type === "text" && text === "")
    ? "cache_control cannot be set for empty text blocks"
    : undefined;
}

function findMessageFlaw(messages: readonly JsonRecord[]): string | undefined {
  for (const [at, message] of messages.entries()) {
    const blocks = listOf(message["content"]);
    if (message["content"] === "" || (Array.isArray(message["content"]) && blocks.length === 0)) {
      if (at < messages.length - 1 || message["role"] === "user") return `messages.${at}: content is empty`;
    }
    if (blocks.some(({ type, text }) => type === "text" && text === "")) {
      return "messages: text content blocks must be non-empty";
    }
    const flaw = findPairFlaw(at, blocks, messages[at + 1], messages[at - 1]);
    if (flaw !== undefined) return flaw;
  }
  return undefined;
}

/** Every call is answered in the very next message, and every result answers a call of the one before. */
function findPairFlaw(
  at: number,
  blocks: readonly JsonRecord[],
  next: JsonRecord | undefined,
  previous: JsonRecord | undefined,
): string | undefined {
  const answered = new Set(idsOf(listOf(next?.["content"]), "tool_result", "tool_use_id"));
  const open = idsOf(blocks, "tool_use", "id").filter((id) => !answered.has(id));
  if (open.length > 0) {
    return `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(", ")}`;
  }
  const asked = new Set(idsOf(listOf(previous?.["content"]), "tool_use", "id"));
  const stray = idsOf(blocks, "tool_result", "tool_use_id").find((id) => !asked.has(id));
  return stray === undefined
    ? undefined
    : `messages.${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}`;
}

function idsOf(blocks: readonly JsonRecord[], type: string, key: string): readonly string[] {
  return blocks.filter((block) => block["type"] === type).map((block) => String(block[key]));
}
