import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { readUserBlocks } from "./read-assistant-blocks.ts";

/** What a session is called, strongest first. */
export interface SessionTitles {
  /** Given by a person. */
  readonly custom?: string;
  /** Made up by a model. */
  readonly generated?: string;
  /** The beginning of the first prompt. */
  readonly firstPrompt?: string;
}

/** The last title of a kind counts; the prompt is the first that a person wrote. */
export function readSessionTitles(records: readonly JsonRecord[]): SessionTitles {
  const custom = lastText(records, "custom-title", "customTitle");
  const generated = lastText(records, "ai-title", "aiTitle") ?? lastText(records, "summary", "summary");
  const firstPrompt = firstPromptOf(records);
  return {
    custom,
    generated,
    firstPrompt,
  };
}

export function bestTitle({ custom, generated, firstPrompt }: SessionTitles): string | undefined {
  return custom ?? generated ?? firstPrompt;
}

/** A line of the main conversation that people are shown. */
export function isShownMessage(record: JsonRecord): boolean {
  const isMessage = record.type === "user" || record.type === "assistant";
  return isMessage && isRecord(record.message) && record.isMeta !== true && record.isSidechain !== true;
}

const maxTitle = 200;

function lastText(records: readonly JsonRecord[], type: string, field: string): string | undefined {
  const value = records.findLast((record) => record.type === type && typeof record[field] === "string")?.[
    field
  ];
  const text = typeof value === "string" ? onOneLine(value) : "";
  return text === "" ? undefined : text;
}

function firstPromptOf(records: readonly JsonRecord[]): string | undefined {
  for (const record of records) {
    if (record.type !== "user" || !isShownMessage(record) || record.isCompactSummary === true) continue;
    const blocks = readUserBlocks(isRecord(record.message) ? record.message.content : undefined);
    const text = onOneLine(blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join(" "));
    if (text !== "" && !isCommandEcho(text)) return text;
  }
  return undefined;
}

/** Commands typed at the prompt are recorded as tagged text, which says nothing about the work. */
function isCommandEcho(text: string): boolean {
  return /^<(local-)?command-/.test(text);
}

/** Titles are shown in lists and terminals, so control characters must not survive. */
function onOneLine(text: string): string {
  const start = text.slice(0, maxTitle * 4);
  const plain = start.replace(/[\s\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").trim();
  return plain.length > maxTitle ? `${plain.slice(0, maxTitle - 1).trimEnd()}…` : plain;
}
