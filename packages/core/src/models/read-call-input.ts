import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";

/** The input of a call from the text that a model wrote; text that is no JSON stays text, and the call is answered with an error. */
export function readCallInput(text: string): unknown {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The input of a call as it is sent back: providers take only objects. */
export function sentCallInput(input: unknown): JsonRecord {
  return isRecord(input) ? input : { input };
}
