import type { Finding } from "../foundation/problem.ts";
import type { AgentDefinition, WrittenField } from "./agent-definition.ts";
import { type DefinitionKey, definitionKeys, meaningOfKey, restrictingKeys } from "./definition-keys.ts";
import { combineRepeated, fieldReaders } from "./field-readers.ts";
import type { Frontmatter, FrontmatterField } from "./read-frontmatter.ts";

/** The fields of a definition as understood, before a name and a source are settled. */
export type DefinitionFields = Partial<Omit<AgentDefinition, "prompt" | "source" | "written">>;

export interface FieldsReading {
  readonly fields: DefinitionFields;
  readonly written: Readonly<Record<string, WrittenField>>;
  readonly findings: readonly Finding[];
}

/** Turns what a frontmatter says into typed fields. A field that limits the agent and cannot be read is an error. */
export function readDefinitionFields(frontmatter: Pick<Frontmatter, "fields" | "repeated">): FieldsReading {
  const findings: Finding[] = [];
  const chosen = chooseFields(frontmatter.fields, findings);
  const fields: Partial<Record<DefinitionKey, unknown>> = {};
  const written: Record<string, WrittenField> = {};
  for (const key of definitionKeys) {
    const field = chosen.get(key);
    if (field === undefined) continue;
    written[key] = { key: field.key, value: field.value, place: field.place };
    const value = readField(key, field, findings);
    const earlier = frontmatter.repeated.filter((other) => other.key === field.key);
    const settled = earlier.reduceRight(
      (later, other) => combineRepeated(key, readField(key, other, findings), later),
      value,
    );
    if (settled !== undefined) fields[key] = settled;
  }
  // The readers return exactly the type of their field; the table cannot express that per key.
  return { fields: fields as DefinitionFields, written, findings };
}

/** Which written field stands for which canonical one: the exact spelling wins over a misspelt one. */
function chooseFields(
  fields: ReadonlyMap<string, FrontmatterField>,
  findings: Finding[],
): ReadonlyMap<DefinitionKey, FrontmatterField> {
  const chosen = new Map<DefinitionKey, FrontmatterField>();
  for (const field of fields.values()) {
    const meaning = meaningOfKey(field.key);
    if (meaning.type === "known") chosen.set(meaning.key, field);
  }
  for (const field of fields.values()) {
    const meaning = meaningOfKey(field.key);
    if (meaning.type === "unknown") findings.push(unknownKey(field.key, meaning.nearest));
    if (meaning.type !== "misspelt") continue;
    const taken = chosen.has(meaning.key);
    if (!taken) chosen.set(meaning.key, field);
    findings.push({
      severity: "warning",
      code: "misspelt-key",
      message: `\`${field.key}\` is not a field of an agent; ${taken ? `\`${meaning.key}\` is there too, so it was ignored` : `it was read as \`${meaning.key}\``}.`,
      advice: `Write \`${meaning.key}\`.`,
      path: [field.key],
    });
  }
  return chosen;
}

function unknownKey(key: string, nearest: DefinitionKey | undefined): Finding {
  return {
    severity: "warning",
    code: "unknown-key",
    message: `\`${key}\` is not a field of an agent and has no effect.`,
    ...(nearest === undefined ? {} : { advice: `Did you mean \`${nearest}\`?` }),
    path: [key],
  };
}

function readField(key: DefinitionKey, field: FrontmatterField, findings: Finding[]): unknown {
  const path = [field.key];
  const unreadable = (because: string, advice: string): undefined => {
    const restricts = restrictingKeys.has(key);
    const effect = restricts
      ? "the agent is not loaded, because guessing could grant more than was meant"
      : "it was ignored";
    const code = restricts ? "unreadable-restriction" : "unreadable-field";
    findings.push({
      severity: restricts ? "error" : "warning",
      code,
      message: `\`${field.key}\` cannot be read (${because}); ${effect}.`,
      advice,
      path,
    });
    return undefined;
  };
  const report = (severity: "warning" | "note", code: string, message: string, advice?: string): void => {
    findings.push({ severity, code, message, ...(advice === undefined ? {} : { advice }), path });
  };
  const reader = fieldReaders[key];
  if (field.unreadable !== undefined) return unreadable(field.unreadable, reader.expected);
  return reader.read(field, {
    report,
    unreadable: (because) => unreadable(because, reader.expected),
    findings,
  });
}
