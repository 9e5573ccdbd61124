import { isRecord, type JsonRecord } from "../foundation/json-record.ts";

/** Fields of lines that anybody may have written: what is not of the expected kind is not there. */

export function timeOf(record: JsonRecord): number | undefined {
  const time = typeof record.timestamp === "string" ? Date.parse(record.timestamp) : Number.NaN;
  return Number.isFinite(time) ? time : undefined;
}

export function textField(record: JsonRecord, name: string): string | undefined {
  const value = Object.hasOwn(record, name) ? record[name] : undefined;
  return typeof value === "string" ? value : undefined;
}

/** A count or a time, which is never negative; nor is it a zero below zero, which JSON does not have. */
export function numberField(record: JsonRecord, name: string): number | undefined {
  const value = Object.hasOwn(record, name) ? record[name] : undefined;
  const isCount = typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
  return isCount ? value + 0 : undefined;
}

export function recordField(record: JsonRecord, name: string): JsonRecord | undefined {
  const value = Object.hasOwn(record, name) ? record[name] : undefined;
  return isRecord(value) ? value : undefined;
}

/** The beginning of a text, never half a character, and well-formed whatever it was. */
export function bounded(text: string, limit: number): string {
  if (text.length <= limit) return text.toWellFormed();
  const last = text.charCodeAt(limit - 1);
  const isHalf = last >= 0xd800 && last <= 0xdbff;
  return `${text.slice(0, isHalf ? limit - 1 : limit).toWellFormed()}…`;
}

export function boundedLine(text: string, limit: number): string {
  return bounded(
    text
      .slice(0, limit * 4)
      .replace(/\s+/g, " ")
      .trim(),
    limit,
  );
}

/** The object without the keys whose value is undefined. */
export function defined<T extends object>(
  value: T,
): { [Key in keyof T as undefined extends T[Key] ? never : Key]: T[Key] } & {
  [Key in keyof T as undefined extends T[Key] ? Key : never]?: Exclude<T[Key], undefined>;
} {
  // Called for every line of every transcript, so nothing is made that is not needed.
  const kept: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) if (field !== undefined) kept[name] = field;
  // Only keys without a value were taken out, which the type says.
  return kept as ReturnType<typeof defined<T>>;
}
