import type { Diagnostic, DocumentPath, Issue } from "@retinue/base/foundation/diagnostic.ts";
import { placeFindings } from "@retinue/base/foundation/diagnostic.ts";
import { findRepeatedKeys } from "@retinue/base/foundation/find-repeated-keys.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { type JsonSchema, schemaAddress } from "@retinue/base/foundation/json-schema.ts";
import { permissionModes } from "@retinue/base/foundation/option-words.ts";
import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";

/** The file at the root of a project that holds what its configuration may do, as a person accepted it. */
export const lockName = "retinue.lock";

export const lockKinds = ["agent", "skill", "hook", "mcp-server", "workflow", "setting"] as const;
export type LockKind = (typeof lockKinds)[number];

/** What one part of the configuration may do. Lists are sorted; what is empty is absent. */
export interface LockedRights {
  /** Of agents: the entries of the list of tools under their canonical names. */
  readonly tools?: "all" | readonly string[];
  /** Of agents: what is taken away from them. */
  readonly not?: readonly string[];
  /** Of agents: `inherit` is the mode of the session. */
  readonly mode?: string;
  /** Of agents: servers as a definition has them. */
  readonly mcpServers?: readonly unknown[];
  readonly memory?: string;
  /** Everything else it may do, one sentence each. */
  readonly may?: readonly string[];
  /** What forbids, guards or narrows, one sentence each. */
  readonly mayNot?: readonly string[];
  readonly limits?: Readonly<Record<string, number>>;
  /** Files that it runs or brings along, with the hash of each. */
  readonly programs?: Readonly<Record<string, string>>;
  /** Of those, what can be run as it is. Absent where the system does not report it. */
  readonly executable?: readonly string[];
}

export interface LockEntry {
  readonly kind: LockKind;
  readonly name: string;
  /** Below the folder of the lock, with `/`; `plugin:NAME/…` for a file of a plugin. */
  readonly file: string;
  /** Of the text of the file. */
  readonly text: string;
  /** Of what was read: comments and formatting are not in it. */
  readonly meaning: string;
  /** Of the prompt alone, where there is one. */
  readonly prompt?: string;
  readonly rights: LockedRights;
}

export interface LockReading {
  /** Absent where the file cannot be used. */
  readonly entries?: readonly LockEntry[];
  readonly diagnostics: readonly Diagnostic[];
}

/** A key of an object of the file. */
interface LockField {
  readonly expected: string;
  readonly accepts: (value: unknown) => boolean;
  readonly schema: JsonSchema;
  readonly isOptional?: true;
}

type Fields<Shape> = Readonly<Record<keyof Shape, LockField>>;

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isHash = (value: unknown): boolean => typeof value === "string" && /^sha256-[0-9a-f]{64}$/.test(value);
const isMapOf = (accepts: (value: unknown) => boolean) => (value: unknown) =>
  isRecord(value) && Object.values(value).every(accepts);

function isServer(value: unknown): boolean {
  if (!isRecord(value) || !isText(value["name"])) return false;
  if (value["type"] === "inline") return isRecord(value["config"]);
  return value["type"] === "reference" && (value["tools"] === undefined || isTexts(value["tools"]));
}

const hash = { type: "string", pattern: "^sha256-[0-9a-f]{64}$" };
const text = { type: "string", minLength: 1 };
const texts = { type: "array", items: text };

const textField = (description: string): LockField => ({
  expected: "a string",
  accepts: isText,
  schema: { description, ...text },
});
const textsField = (description: string): LockField => ({
  expected: "a list of strings",
  accepts: isTexts,
  schema: { description, ...texts },
  isOptional: true,
});
const hashField = (description: string): LockField => ({
  expected: "sha256- and 64 hexadecimal digits",
  accepts: isHash,
  schema: { description, ...hash },
});

const wordField = (description: string, words: readonly string[]): LockField => ({
  expected: `one of ${words.join(", ")}`,
  accepts: (value) => words.some((word) => word === value),
  schema: { description, enum: words },
  isOptional: true,
});

const rightsFields: Fields<Required<LockedRights>> = {
  tools: {
    expected: '"all" or a list of strings',
    accepts: (value) => value === "all" || isTexts(value),
    schema: { description: "The tools of an agent.", anyOf: [{ const: "all" }, texts] },
    isOptional: true,
  },
  not: textsField("Tools and calls that are taken away from an agent."),
  mode: wordField("The permission mode of an agent.", ["inherit", ...permissionModes]),
  mcpServers: {
    expected: "a list of servers with `type` and `name`",
    accepts: (value) => Array.isArray(value) && value.every(isServer),
    schema: {
      description: "The MCP servers of an agent.",
      type: "array",
      items: {
        type: "object",
        properties: { type: { enum: ["reference", "inline"] }, name: text },
        required: ["type", "name"],
      },
    },
    isOptional: true,
  },
  memory: wordField("The memory of an agent.", ["user", "project", "local"]),
  may: textsField("What else it may do."),
  mayNot: textsField("What denies, guards or narrows its rights."),
  limits: {
    expected: "numbers by name",
    accepts: isMapOf((value) => typeof value === "number"),
    schema: {
      description: "Its limits.",
      type: "object",
      additionalProperties: { type: "number" },
    },
    isOptional: true,
  },
  programs: {
    expected: "hashes by the name of a file",
    accepts: isMapOf(isHash),
    schema: {
      description: "Files that it runs or includes.",
      type: "object",
      additionalProperties: hash,
    },
    isOptional: true,
  },
  executable: textsField("The files among them that are executable."),
};

const entryFields: Fields<Required<LockEntry>> = {
  kind: {
    expected: `one of ${lockKinds.join(", ")}`,
    accepts: (value) => lockKinds.some((kind) => kind === value),
    schema: { description: "The kind of part.", enum: [...lockKinds] },
  },
  name: textField("Its name."),
  file: textField("Its file."),
  text: hashField("The hash of the file's text."),
  meaning: hashField("The hash of what was read, without comments and formatting."),
  prompt: { ...hashField("The hash of its prompt."), isOptional: true },
  rights: {
    expected: "an object",
    accepts: isRecord,
    schema: { description: "What it may do.", ...objectSchema(rightsFields) },
  },
};

/** The version of the form; a file of another one is not guessed at. */
const version = 1;

export function lockSchema(): JsonSchema {
  return {
    type: "object",
    properties: {
      version: { description: "The version of this form.", const: version },
      entries: {
        description: "Every part of the configuration, sorted.",
        type: "array",
        items: objectSchema(entryFields),
      },
    },
    required: ["version", "entries"],
    additionalProperties: false,
  };
}

function objectSchema(fields: Readonly<Record<string, LockField>>): JsonSchema {
  const entries = Object.entries(fields);
  return {
    type: "object",
    properties: Object.fromEntries(entries.map(([key, { schema }]) => [key, schema])),
    required: entries.filter(([, { isOptional }]) => isOptional !== true).map(([key]) => key),
    additionalProperties: false,
  };
}

/** Reads the text of a lock. It is the measure of other files, so that nothing in it is repaired. */
export function readLock(source: string, file: string): LockReading {
  const document = parseJsonDocument(source, file);
  if (document.diagnostic !== undefined)
    return { diagnostics: [{ ...document.diagnostic, advice: repairAdvice }] };
  const issues: Issue[] = [];
  const { value } = document;
  const refuse = (message: string, path: DocumentPath = []): void => {
    issues.push({ severity: "error", code: "lock-broken", path, message, advice: repairAdvice });
  };
  const repeated = findRepeatedKeys(source);
  const [twice] = repeated ?? [];
  if (repeated === undefined) refuse("The lock is nested too deeply.");
  else if (twice !== undefined) refuse(`${quote(twice.at(-1))} is written twice in one object.`, twice);
  else if (!isRecord(value)) refuse("A lock must be a JSON object.");
  else if (value["version"] !== version)
    refuse(
      `This lock has version ${quote(value["version"])}; this release reads version ${version}.`,
      "version" in value ? ["version"] : [],
    );
  else if (!Array.isArray(value["entries"])) refuse("A lock needs a list of `entries`.");
  else
    for (const [index, entry] of value["entries"].entries())
      checkObject(entry, entryFields, ["entries", index], refuse);
  // Of two entries about one part only one could count, and a reader may take the other for it.
  const entries = issues.length > 0 ? [] : (value as { readonly entries: readonly LockEntry[] }).entries;
  const first = new Map(entries.map((entry, index) => [lockKey(entry), index]));
  for (const [index, entry] of entries.entries())
    if (first.get(lockKey(entry)) !== index)
      refuse(`${entry.kind} ${entry.name} of ${entry.file} is in the lock twice.`, ["entries", index]);
  if (issues.length > 0) return { diagnostics: placeFindings(issues, file, document.locate) };
  return { entries, diagnostics: [] };
}

const repairAdvice = "`retinue agents lock` rewrites it; review the changes before you commit it.";

function checkObject(
  value: unknown,
  fields: Readonly<Record<string, LockField>>,
  path: DocumentPath,
  refuse: (message: string, path: DocumentPath) => void,
): void {
  if (!isRecord(value)) {
    refuse("An entry of a lock must be an object.", path);
    return;
  }
  for (const [key, { expected, accepts, isOptional }] of Object.entries(fields)) {
    const has = Object.hasOwn(value, key);
    if (!has && isOptional === true) continue;
    if (!has) refuse(`An entry of a lock needs \`${key}\`: ${expected}.`, path);
    else if (!accepts(value[key])) refuse(`\`${key}\` must be ${expected}.`, [...path, key]);
    else if (key === "rights") checkObject(value[key], rightsFields, [...path, key], refuse);
  }
  for (const key of Object.keys(value))
    if (!Object.hasOwn(fields, key)) refuse(`\`${key}\` is not a key of a lock.`, [...path, key]);
}

/** The text of a lock: one order and one form, so that a change of it is small. */
export function writeLock(entries: readonly LockEntry[]): string {
  const sorted = [...entries].sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
  return `${JSON.stringify({ $schema: schemaAddress("lock"), version, entries: sorted }, undefined, 2)}\n`;
}

function orderOf({ kind, file, name }: LockEntry): string {
  return `${lockKinds.indexOf(kind)}\0${file}\0${name}`;
}

/** Which part of the configuration an entry is about. */
export function lockKey({ kind, file, name }: Pick<LockEntry, "kind" | "file" | "name">): string {
  return JSON.stringify([kind, file, name]);
}
