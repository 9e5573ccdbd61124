// @io
import { open, readFile } from "node:fs/promises";
import { isRecord, parseJsonRecord } from "@retinue/base/foundation/json-record.ts";
import { boundedLine, textField } from "../../inspection/read-answer.ts";
import type { AgentFiles, SessionFiles } from "../../journal/session-files.ts";

/** An agent that asks, as a person knows it. */
export interface Asker {
  /** Its task, or the name it was given. */
  readonly name?: string;
  /** What it said last, which is why it wants to make the call. */
  readonly said?: string;
}

const maxRead = 128 * 1024;
const maxSaid = 400;

/** Reads the end of its transcript, of the main agent where none is named. What is not there or damaged is left out. */
export async function readAsker(files: SessionFiles, agentId: string | undefined): Promise<Asker> {
  const { transcript, meta }: Pick<AgentFiles, "transcript"> & Partial<AgentFiles> =
    agentId === undefined ? files : files.agent(agentId);
  const [about, end] = await Promise.all([
    meta === undefined ? undefined : readFile(meta, "utf8").catch(() => undefined),
    readEnd(transcript).catch(() => ""),
  ]);
  const facts = about === undefined ? undefined : parseJsonRecord(about);
  const name = facts === undefined ? undefined : textField(facts, "description") || textField(facts, "name");
  const lastText = end
    .split("\n")
    .toReversed()
    .map((line) => textIn(line))
    .find((text) => text !== "");
  return {
    ...(name === undefined || name === "" ? {} : { name: boundedLine(name, 80) }),
    ...(lastText === undefined ? {} : { said: boundedLine(lastText, maxSaid) }),
  };
}

/** The last paragraph of prose: lists and code do not explain why by themselves. */
function textIn(line: string): string {
  const record = line.includes('"assistant"') ? parseJsonRecord(line) : undefined;
  const message = record?.["type"] === "assistant" ? record["message"] : undefined;
  const content: unknown = isRecord(message) ? message["content"] : undefined;
  if (!Array.isArray(content)) return "";
  return (
    content
      .flatMap((block: unknown) =>
        isRecord(block) && block["type"] === "text" ? (textField(block, "text") ?? "") : [],
      )
      .flatMap((text) => text.split(/\n\s*\n/))
      .map((part) => part.trim())
      .findLast((part) => part !== "" && !/^(?:[-*+]|\d+[.)]|`{3}|~{3}|\||#)/.test(part)) ?? ""
  );
}

async function readEnd(file: string): Promise<string> {
  await using handle = await open(file);
  const { size } = await handle.stat();
  const length = Math.min(size, maxRead);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length);
  return buffer.toString("utf8", 0, bytesRead);
}
