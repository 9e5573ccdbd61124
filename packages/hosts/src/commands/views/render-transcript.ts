import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { Message } from "@retinue/core/conversation/message.ts";
import { messageIn } from "@retinue/core/kernel/project/project-tasks.ts";
import { describeCall } from "../../shared/describe-call.ts";
import type { Paint } from "../../shared/paint.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";

/** The lines of a transcript as a person reads them; those that show nothing are left out. */
export function renderTranscript(records: readonly JsonRecord[], paint: Paint): string {
  return records
    .flatMap((record) => renderRecord(record, paint))
    .map((text) => `${text}\n`)
    .join("");
}

function renderRecord(record: JsonRecord, paint: Paint): readonly string[] {
  if (isRecord(record.runEnding)) {
    const { status, reason, error } = record.runEnding;
    const why = typeof error === "string" ? `, ${error}` : "";
    return [paint.bold(stripControlCharacters(`[${String(status)}: ${String(reason)}${why}]`))];
  }
  const message = messageIn(record);
  if (message === undefined) return [];
  return message.role === "assistant"
    ? renderAnswer(message.content, paint)
    : renderUser(message.content, paint);
}

type ContentOf<Role> = Extract<Message, { readonly role: Role }>["content"];

function renderAnswer(content: ContentOf<"assistant">, paint: Paint): readonly string[] {
  return content.flatMap((block) => {
    if (block.type === "text") return [plain(block.text)];
    return block.type === "tool_use" ? [paint.dim(stripControlCharacters(`· ${describeCall(block)}`))] : [];
  });
}

/** What a tool gave back stays in the file; only what went wrong is shown. */
function renderUser(content: ContentOf<"user">, paint: Paint): readonly string[] {
  return [content].flat().flatMap((block) => {
    if (typeof block === "string") return [];
    if (block.type === "text") return [paint.name(plain(`> ${block.text}`))];
    if (block.type !== "tool_result" || block.is_error !== true) return [];
    const [part] = typeof block.content === "string" ? [] : block.content;
    const partText = part?.type === "text" ? part.text : "";
    const text = typeof block.content === "string" ? block.content : partText;
    return [paint.error(stripControlCharacters(`  failed: ${text.split("\n")[0]?.slice(0, 200)}`))];
  });
}

function plain(text: string): string {
  return text.trimEnd().split("\n").map(stripControlCharacters).join("\n");
}
