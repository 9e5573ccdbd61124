import type { Issue } from "../foundation/diagnostic.ts";
import { isRecord } from "../foundation/json-record.ts";
import { isWiderMode } from "../permissions/is-wider-mode.ts";
import type { PermissionMode } from "../permissions/permission-mode.ts";
import type { AgentDefinition, WrittenField } from "./agent-definition.ts";
import { chooseFields } from "./choose-fields.ts";
import { type DefinitionKey, definitionKeys, meaningOfKey, restrictingKeys } from "./definition-keys.ts";
import { fieldReaders } from "./field-readers.ts";
import type { Frontmatter, FrontmatterField } from "./read-frontmatter.ts";

/** The fields of a definition as understood, before a name and a source are settled. */
export type DefinitionFields = Partial<Omit<AgentDefinition, "prompt" | "source" | "written">>;

export interface FieldsReading {
  readonly fields: DefinitionFields;
  readonly written: Readonly<Record<string, WrittenField>>;
  readonly issues: readonly Issue[];
}

/** Turns what a frontmatter says into typed fields. A field that limits the agent and cannot be read is an error. */
export function readDefinitionFields(frontmatter: Pick<Frontmatter, "fields" | "repeated">): FieldsReading {
  const issues: Issue[] = [];
  const chosen = chooseFields(
    frontmatter.fields,
    { meaningOf: meaningOfKey, unknownKey, misspeltKey },
    issues,
  );
  const fields: Partial<Record<DefinitionKey, unknown>> = {};
  const written: Record<string, WrittenField> = {};
  for (const key of definitionKeys) {
    const [first] = chosen.get(key) ?? [];
    if (first === undefined) continue;
    written[key] = { key: first.key, value: first.value, place: first.place };
    const readers = (chosen.get(key) ?? []).map((field) => () => {
      const all = [...frontmatter.repeated.filter((other) => other.key === field.key), field];
      return combineRepeated(
        key,
        all.map((each) => readField(key, each, issues)),
      );
    });
    const settled = combineSpellings(key, readers);
    if (settled !== undefined) fields[key] = settled;
  }
  // The readers return exactly the type of their field; the table cannot express that per key.
  return { fields: fields as DefinitionFields, written, issues };
}

function misspeltKey(key: string, meant: DefinitionKey, first: string | undefined): Issue {
  const effect = addsUp(meant) ? "both hold" : "it counts only where that says nothing";
  const reading =
    first === undefined ? `it was read as \`${meant}\`` : `\`${first}\` is there too; ${effect}`;
  return {
    severity: "warning",
    code: "misspelt-key",
    message: `\`${key}\` is not a field of an agent; ${reading}.`,
    advice: first === undefined ? `Write \`${meant}\`.` : `Keep one of the two, as \`${meant}\`.`,
    path: [key],
  };
}

function unknownKey(key: string, nearest: DefinitionKey | undefined): Issue {
  return {
    severity: "warning",
    code: "unknown-key",
    message: `\`${key}\` is not a field of an agent and has no effect.`,
    ...(nearest === undefined ? {} : { advice: `Did you mean \`${nearest}\`?` }),
    path: [key],
  };
}

function readField(key: DefinitionKey, field: FrontmatterField, issues: Issue[]): unknown {
  const path = [field.key];
  const unreadable = (reason: string, advice: string): undefined => {
    const restricts = restrictingKeys.has(key);
    const effect = restricts
      ? "the agent is not loaded, because guessing could grant more than was meant"
      : "it was ignored";
    const code = restricts ? "unreadable-restriction" : "unreadable-field";
    issues.push({
      severity: restricts ? "error" : "warning",
      code,
      message: `\`${field.key}\` cannot be read (${reason}); ${effect}.`,
      advice,
      path,
    });
    return undefined;
  };
  const report = (severity: "warning" | "note", code: string, message: string, advice?: string): void => {
    issues.push({ severity, code, message, ...(advice === undefined ? {} : { advice }), path });
  };
  const reader = fieldReaders[key];
  if (field.unreadable !== undefined) return unreadable(field.unreadable, reader.expected);
  return reader.read(field, {
    report,
    unreadable: (reason) => unreadable(reason, reader.expected),
    issues,
  });
}

/** Of a limit that is several times, the narrower meaning holds; elsewhere the last one. Values in file order. */
function combineRepeated(key: DefinitionKey, values: readonly unknown[]): unknown {
  const said = values.filter((value) => value !== undefined);
  if (addsUp(key)) return joined(said);
  return said.reduce<unknown>(
    (earlier, later) => (earlier === undefined ? later : narrower(key, earlier, later)),
    undefined,
  );
}

/** A field that is under several spellings: denials and hooks of all hold; else the first that says anything. */
function combineSpellings(key: DefinitionKey, readers: readonly (() => unknown)[]): unknown {
  if (addsUp(key)) return joined(readers.map((read) => read()).filter((value) => value !== undefined));
  for (const read of readers) {
    const value = read();
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Fields in which every entry takes something away or guards it. */
function addsUp(key: DefinitionKey): boolean {
  return key === "disallowedTools" || key === "hooks";
}

function joined(lists: readonly unknown[]): unknown {
  return lists.length < 2 ? lists[0] : [...new Set(lists.flat())];
}

function narrower(key: DefinitionKey, earlier: unknown, later: unknown): unknown {
  if (key === "tools" && Array.isArray(earlier) && Array.isArray(later))
    return later.filter((entry) => earlier.includes(entry));
  if (key === "limits" && isRecord(earlier) && isRecord(later)) return smallest(earlier, later);
  // The reader of `permissionMode` gives nothing but modes.
  if (key === "permissionMode" && isWiderMode(later as PermissionMode, earlier as PermissionMode))
    return earlier;
  return later;
}

/** Of each limit the smaller number. */
function smallest(
  earlier: Readonly<Record<string, unknown>>,
  later: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const both = Object.keys(earlier).filter((key) => Object.hasOwn(later, key));
  const least = both.map((key) => [key, Math.min(Number(earlier[key]), Number(later[key]))]);
  return { ...earlier, ...later, ...Object.fromEntries(least) };
}
