import type { DocumentPath, Issue } from "../foundation/diagnostic.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value of a key the document itself has; null counts as absent. */
export function ownValue(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? (object[key] ?? undefined) : undefined;
}

export interface FieldReader {
  string(key: string): string | undefined;
  boolean(key: string): boolean | undefined;
}

/** Reads fields of one object; a value of another type is left out and reported. */
export function createFieldReader(object: JsonObject, path: DocumentPath, issues: Issue[]): FieldReader {
  const wrongType = (key: string, expected: string) => {
    issues.push(wrongTypeIssue([...path, key], expected));
    return undefined;
  };
  return {
    string(key) {
      const value = ownValue(object, key);
      if (value === undefined || typeof value === "string") return value;
      return typeof value === "number" ? String(value) : wrongType(key, "a text");
    },
    boolean(key) {
      const value = ownValue(object, key);
      return value === undefined || typeof value === "boolean" ? value : wrongType(key, "true or false");
    },
  };
}

export function wrongTypeIssue(path: DocumentPath, expected: string): Issue {
  return {
    severity: "warning",
    code: "wrong-type",
    path,
    message: `\`${path.join(".")}\` must be ${expected}; it was left out.`,
  };
}
