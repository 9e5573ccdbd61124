export type JsonRecord = Readonly<Record<string, unknown>>;

/** A JSON object: neither null nor a list. */
export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  return value === undefined ? "nothing" : `a ${typeof value}`;
}

/** The value of a JSON text; undefined where it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The object of a JSON text; undefined where it is none. */
export function parseJsonRecord(text: string): JsonRecord | undefined {
  const value = parseJson(text);
  return isRecord(value) ? value : undefined;
}

/** A value as a person would recognise it in a message: short, on one line, without control characters. */
export function quote(value: unknown, limit = 80): string {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean")
    return kindOf(value);
  const text = JSON.stringify(typeof value === "string" ? value.slice(0, limit + 1) : value);
  const plain = text.replace(/[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, "\ufffd");
  return typeof value === "string" && value.length > limit ? `${plain.slice(0, limit)}…"` : plain;
}

/** True when a value is nested deeper, or is larger, than anything a person writes; also ends on shared and circular values. */
export function isUnreasonablyLarge(value: unknown, limits = { depth: 100, nodes: 500_000 }): boolean {
  const waiting: { value: unknown; depth: number }[] = [{ value, depth: 0 }];
  let nodes = 0;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next.value !== "object" || next.value === null) continue;
    if (next.depth >= limits.depth) return true;
    const children: unknown[] = Array.isArray(next.value) ? next.value : Object.values(next.value);
    nodes += children.length;
    if (nodes > limits.nodes) return true;
    for (const child of children) waiting.push({ value: child, depth: next.depth + 1 });
  }
  return false;
}
