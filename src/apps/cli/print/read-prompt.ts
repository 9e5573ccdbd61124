import type { UserMessage } from "../../../conversation/message.ts";
import { RetinueError } from "../../../foundation/retinue-error.ts";
import type { CliInput } from "../cli-host.ts";
import { misuse } from "../session-options.ts";

/** A pipe that stays silent this long beside a prompt in the arguments has nothing to add. */
const patienceMs = 2000;
const largestPrompt = 10 * 1024 * 1024;

/** The prompt: the arguments, what is piped in, or both; else the usual one, where there is one. */
export async function readPrompt(words: readonly string[], stdin: CliInput, usual?: string): Promise<string> {
  const given = words.join(" ").trim();
  const isAnswered = given !== "" || usual !== undefined;
  const piped = stdin.isTerminal
    ? ""
    : (await stdin.readAll({ limit: largestPrompt, ...(isAnswered ? { patienceMs } : {}) })).trim();
  const prompt = [given, piped].filter((part) => part !== "").join("\n\n");
  if (prompt !== "") return prompt;
  if (usual !== undefined) return usual;
  throw noPrompt();
}

export function noPrompt(): RetinueError {
  return misuse("There is no prompt.", 'Write one, as in: retinue -p "what is in this folder?"');
}

/** The user messages of `--input-format stream-json`, one per line; other types are skipped. */
export async function* readMessages(
  stdin: CliInput,
  signal: AbortSignal,
): AsyncGenerator<UserMessage["content"], void> {
  let number = 0;
  for await (const line of stdin.lines({ signal })) {
    number += 1;
    if (line.trim() === "") continue;
    const content = contentOf(parseLine(line, number), number);
    if (content !== undefined) yield content;
  }
}

function parseLine(line: string, number: number): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new RetinueError("bad-input", `Line ${number} of the input is not JSON.`, {
      advice: 'Write one message per line: {"type":"user","message":{"role":"user","content":"…"}}.',
    });
  }
}

function contentOf(value: unknown, number: number): UserMessage["content"] | undefined {
  if (typeof value !== "object" || value === null || Reflect.get(value, "type") !== "user") return undefined;
  const message: unknown = Reflect.get(value, "message");
  const content: unknown =
    typeof message === "object" && message !== null ? Reflect.get(message, "content") : undefined;
  if (typeof content === "string") return content;
  if (Array.isArray(content) && content.length > 0 && content.every(isBlock)) return content;
  throw new RetinueError("bad-input", `Line ${number} of the input has no message content.`, {
    advice: '"content" must be a text or a list of content blocks.',
  });
}

type UserContentBlock = Exclude<UserMessage["content"], string>[number];

function isBlock(value: unknown): value is UserContentBlock {
  return (
    typeof value === "object" &&
    value !== null &&
    ["text", "image", "document"].includes(String(Reflect.get(value, "type")))
  );
}
