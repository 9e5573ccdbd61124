/** The shape of a corpus manifest: files with what a tolerant loader should make of them. */
export interface CorpusManifest {
  readonly files: readonly CorpusEntry[];
}

export interface CorpusEntry {
  /** Relative to the manifest. */
  readonly file: string;
  readonly kind: string;
  readonly scope?: "project" | "user" | "plugin";
  readonly expect: Expectation;
}

export type Expectation = Readonly<Record<string, unknown>> & {
  /** Fields on which reasonable loaders may differ; they never count as a mismatch. */
  readonly soft?: readonly string[];
};

/** One field that came out differently. */
export interface Mismatch {
  readonly field: string;
  readonly expected: unknown;
  readonly actual: unknown;
}

/** Compares the fields an expectation names with what was read; `aliases` maps a field to the soft name that covers it. */
export function compareFields(
  expect: Expectation,
  actual: Readonly<Record<string, unknown>>,
  aliases: Readonly<Record<string, string>> = {},
): Mismatch[] {
  const soft = new Set(expect.soft ?? []);
  return Object.entries(expect).flatMap(([field, expected]) => {
    if (field === "soft" || soft.has(field) || soft.has(aliases[field] ?? field)) return [];
    const value = actual[field];
    return agrees(expected, value, field) ? [] : [{ field, expected, actual: value }];
  });
}

/** Objects are compared by the keys the expectation names; a head agrees when the text begins with it; null is absent. */
function agrees(expected: unknown, actual: unknown, field: string): boolean {
  if (Array.isArray(expected)) {
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((item, index) => agrees(item, actual[index], field))
    );
  }
  if (typeof expected === "object" && expected !== null) {
    if (typeof actual !== "object" || actual === null) return false;
    return Object.entries(expected).every(([key, value]) => agrees(value, Reflect.get(actual, key), key));
  }
  if (field.endsWith("Head") && typeof expected === "string" && expected.length < 60) {
    const text = actual ?? "";
    return typeof text === "string" && (expected === "" ? text === "" : text.startsWith(expected));
  }
  return Object.is(expected ?? null, actual ?? null);
}
