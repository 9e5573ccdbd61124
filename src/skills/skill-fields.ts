import { chooseFields } from "../definitions/choose-fields.ts";
import type { Frontmatter, FrontmatterField } from "../definitions/read-frontmatter.ts";
import type { Issue } from "../foundation/diagnostic.ts";
import type { Skill } from "./skill.ts";
import { skillFieldReaders } from "./skill-field-readers.ts";
import { meaningOfSkillKey, type SkillKey, skillKeys } from "./skill-keys.ts";

/** The fields of a skill as understood, before its name and source are settled. */
export type SkillFields = Partial<Omit<Skill, "displayName" | "body" | "source">>;

export interface SkillFieldsReading {
  readonly fields: SkillFields;
  /** By canonical key, what is in the file. */
  readonly written: ReadonlyMap<SkillKey, FrontmatterField>;
  readonly issues: readonly Issue[];
}

/** Turns what a frontmatter says into typed fields. Of a limit that is several times, each holds; else the last. */
export function readSkillFields(frontmatter: Pick<Frontmatter, "fields" | "repeated">): SkillFieldsReading {
  const issues: Issue[] = [];
  const chosen = chooseFields(
    frontmatter.fields,
    { meaningOf: meaningOfSkillKey, unknownKey, misspeltKey },
    issues,
  );
  const fields: Record<string, unknown> = {};
  const written = new Map<SkillKey, FrontmatterField>();
  for (const key of skillKeys) {
    const spelt = chosen.get(key) ?? [];
    const [first] = spelt;
    if (first === undefined) continue;
    written.set(key, first);
    const earlier = frontmatter.repeated.filter((other) => spelt.some((field) => field.key === other.key));
    const values = [...spelt.slice(1).reverse(), ...earlier, first].map((field) =>
      readField(key, field, issues),
    );
    const settled = combine(
      key,
      values.filter((value) => value !== undefined),
    );
    if (settled !== undefined) fields[properties[key]] = settled;
  }
  // Each reader returns exactly the type of its field; the table cannot express that per key.
  return { fields: fields as SkillFields, written, issues };
}

const properties: Readonly<Record<SkillKey, string>> = {
  name: "name",
  description: "description",
  when_to_use: "whenToUse",
  "argument-hint": "argumentHint",
  arguments: "arguments",
  "disable-model-invocation": "disableModelInvocation",
  "user-invocable": "userInvocable",
  "allowed-tools": "allowedTools",
  "disallowed-tools": "disallowedTools",
  model: "model",
  effort: "effort",
  context: "context",
  agent: "agent",
  background: "background",
  hooks: "hooks",
  paths: "paths",
  shell: "shell",
  metadata: "metadata",
  license: "license",
  compatibility: "compatibility",
};

function combine(key: SkillKey, values: readonly unknown[]): unknown {
  if (values.length < 2) return values[0];
  if (key === "disallowed-tools" || key === "hooks") return [...new Set(values.flat())];
  if (key === "disable-model-invocation") return values.includes(true);
  return values.at(-1);
}

function misspeltKey(key: string, meant: SkillKey, first: string | undefined): Issue {
  const reading = first === undefined ? `it was read as \`${meant}\`` : `\`${first}\` is there too`;
  return {
    severity: "warning",
    code: "misspelt-key",
    message: `\`${key}\` is not a field of a skill; ${reading}.`,
    advice: first === undefined ? `Write \`${meant}\`.` : `Keep one of the two, as \`${meant}\`.`,
    path: [key],
  };
}

/** Other products keep much of their own in a skill, so an unknown key alone is no mistake. */
function unknownKey(key: string, nearest: SkillKey | undefined): Issue {
  return {
    severity: nearest === undefined ? "note" : "warning",
    code: "unknown-key",
    message: `\`${key}\` is not a field of a skill and has no effect.`,
    ...(nearest === undefined ? {} : { advice: `Did you mean \`${nearest}\`?` }),
    path: [key],
  };
}

function readField(key: SkillKey, field: FrontmatterField, issues: Issue[]): unknown {
  const path = [field.key];
  const reader = skillFieldReaders[key];
  const unreadable = (reason: string): undefined => {
    const restricts = key === "hooks" || key === "disallowed-tools";
    const effect = restricts
      ? "the skill is not loaded, because it would do more than was meant"
      : "it was ignored";
    issues.push({
      severity: restricts ? "error" : "warning",
      code: restricts ? "unreadable-restriction" : "unreadable-field",
      message: `\`${field.key}\` cannot be read (${reason}); ${effect}.`,
      advice: reader.expected,
      path,
    });
    return undefined;
  };
  const report = (severity: "warning" | "note", code: string, message: string, advice?: string): void => {
    issues.push({ severity, code, message, ...(advice === undefined ? {} : { advice }), path });
  };
  if (field.unreadable !== undefined && key !== "disable-model-invocation")
    return unreadable(field.unreadable);
  return reader.read(field, { report, unreadable, issues });
}
