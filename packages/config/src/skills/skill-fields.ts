import type { Issue } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { looseWords, orNull, schemas } from "@retinue/base/foundation/json-schema.ts";
import { canonicalToolName } from "@retinue/base/foundation/tool-table.ts";
import { specifierKind } from "@retinue/gate/permission-rule.ts";
import { definitionFields, type FieldReader, type FieldReport } from "../agents/agent-definition.ts";
import { chooseFields } from "../agents/choose-fields.ts";
import { fieldSchemas } from "../agents/field-schemas.ts";
import type { Frontmatter, FrontmatterField } from "../agents/read-frontmatter.ts";
import { readToolList } from "../agents/read-tool-list.ts";
import { resolveToolName, splitWords } from "../tools/tool-entry.ts";
import type { Skill } from "./skill.ts";
import { meaningOfSkillKey, type SkillKey, skillKeys } from "./skill-keys.ts";

/** The fields of a skill as understood, before its name and source are settled. */
export type SkillFields = Partial<Omit<Skill, "displayName" | "body" | "source">>;

interface SkillFieldsReading {
  readonly fields: SkillFields;
  /** By canonical key, what is in the file. */
  readonly written: ReadonlyMap<SkillKey, FrontmatterField>;
  readonly issues: readonly Issue[];
}

/** Turns the entries of a frontmatter into typed fields. Of a limit that is several times, each holds; else the last. */
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
    advice: nearest === undefined ? undefined : `Did you mean \`${nearest}\`?`,
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
    issues.push({ severity, code, message, advice, path });
  };
  if (field.unreadable !== undefined && key !== "disable-model-invocation")
    return unreadable(field.unreadable);
  return reader.read(field, { report, unreadable, issues });
}

/** Reads `allowed-tools`. In a list each entry is one rule: `["Bash git status"]` must not become a grant of all of Bash. */
function readAllowedRules(field: FrontmatterField, to: FieldReport): readonly string[] | undefined {
  const entries = readRules(field, to);
  return Array.isArray(field.value) ? entries : entries?.flatMap(splitAtSpaces);
}

/** Reads `disallowed-tools`. An entry with spaces denies each tool that it names, since as one rule it would deny nothing. */
function readDisallowedRules(field: FrontmatterField, to: FieldReport): readonly string[] | undefined {
  return readRules(field, to)?.flatMap(splitAtSpaces);
}

function readRules(field: FrontmatterField, to: FieldReport): readonly string[] | undefined {
  if (field.value === null) return undefined;
  const word = typeof field.value === "string" ? words.get(field.value.trim().toLowerCase()) : undefined;
  if (word !== undefined) {
    const meaning = word.length === 0 ? "[]" : '"*"';
    const message = `\`${field.key}: ${String(field.value).trim()}\` was read as \`${meaning}\`.`;
    to.report("warning", "tools-word", message, `Write \`${field.key}: ${meaning}\`.`);
    return word;
  }
  return readToolList(field, to);
}

/**
 * Spaces separate too, unless the words are a sentence or a parenthesis is alone, as in `Bash (git status)`: read as
 * two, that would grant all of Bash.
 */
function splitAtSpaces(entry: string): readonly string[] {
  const pieces = splitWords(entry);
  const isList =
    pieces.some(isTool) && pieces.every((piece) => toolLike.test(piece) && !sentenceWord.test(piece));
  return isList && !isCommandLine(pieces) ? pieces : [entry];
}

/** `Bash git status` is a command written without parentheses, and no list of three tools. */
function isCommandLine(pieces: readonly string[]): boolean {
  return pieces.some((piece, at) => {
    const next = pieces[at + 1];
    return specifierKind(canonicalToolName(piece)) === "command" && next !== undefined && !isTool(next);
  });
}

const toolLike = /^[\w*][^\s()]*(?:\(.*\))?$/s;
const sentenceWord =
  /^(?:a|access|all|an|and|any|are|as|files?|for|if|in|is|no|not|of|on|only|or|the|to|tools?|via|when|with)$|[.:;!?]$/i;

function isTool(word: string): boolean {
  const name = word.replace(/\(.*$/s, "");
  return /^(?:[A-Z][A-Za-z0-9]*|\*|\w+_\S*)$/.test(name) || resolveToolName(name).type !== "unknown";
}

/** Words that people write for every tool or for none. */
const words: ReadonlyMap<string, readonly string[]> = new Map([
  ["all", ["*"]],
  ["all tools", ["*"]],
  ["all available tools", ["*"]],
  ["none", []],
]);

const argumentsSchema = {
  anyOf: [
    { type: "string" },
    { type: "array", items: { anyOf: [{ type: "string" }, { type: "object" }] } },
    { type: "object" },
    schemas.null,
  ],
};

/** One reader for each field; each takes every shape real files use, and makes a Finding of what it cannot. */
export const skillFieldReaders: Readonly<Record<SkillKey, FieldReader>> = {
  name: { expected: "Write `name: my-skill`.", read: definitionFields.name.read, schema: fieldSchemas.word },
  description: { ...definitionFields.description, schema: {} },
  when_to_use: { expected: "Write one text.", read: readProse, schema: {} },
  "argument-hint": {
    expected: 'Write a text in quotes, such as `"[file] [--fix]"`.',
    read: readProse,
    schema: {},
  },
  arguments: {
    expected: "Write names, such as `arguments: [file, mode]`.",
    read: readArguments,
    schema: argumentsSchema,
  },
  "disable-model-invocation": {
    expected: "Write true or false.",
    read: readGuard,
    schema: fieldSchemas.flag,
  },
  "user-invocable": {
    expected: "Write true or false.",
    read: definitionFields.background.read,
    schema: fieldSchemas.flag,
  },
  "allowed-tools": {
    expected: "Write rules, such as `allowed-tools: Read, Bash(git status *)`.",
    read: readAllowedRules,
    schema: orNull(fieldSchemas.toolList),
  },
  "disallowed-tools": {
    expected: "Write rules, such as `disallowed-tools: Write, Edit`.",
    read: readDisallowedRules,
    schema: orNull(fieldSchemas.toolList),
  },
  model: definitionFields.model,
  effort: definitionFields.effort,
  context: {
    expected: "Write `context: fork`, or leave it out.",
    read: readContext,
    schema: orNull(looseWords(["fork", "inline", "main", "none", ""])),
  },
  agent: {
    expected: "Write the name of one agent.",
    read: definitionFields.model.read,
    schema: fieldSchemas.word,
  },
  background: definitionFields.background,
  hooks: {
    expected: definitionFields.hooks.expected,
    read: readHooksField,
    schema: orNull(fieldSchemas.hooks),
  },
  paths: {
    expected: "Write patterns, such as `paths: [src/**/*.ts]`.",
    read: readPatterns,
    schema: { type: ["string", "array", "number", "boolean", "null"] },
  },
  shell: {
    expected: "Write bash or powershell.",
    read: readShell,
    schema: orNull(looseWords(["bash", "powershell", "pwsh"])),
  },
  metadata: { expected: "", read: () => undefined, schema: {} },
  license: { expected: "", read: () => undefined, schema: {} },
  compatibility: { expected: "", read: () => undefined, schema: {} },
};

/** `[file] [--fix]` is a list to YAML, or nothing at all; people mean the text as it is. */
function readProse(field: FrontmatterField): string | undefined {
  const { value } = field;
  if (value === null || value === undefined) return undefined;
  const isBlockList = Array.isArray(value) && !field.text.startsWith("[");
  const plain = isBlockList ? value.map(String).join(" ") : field.text;
  const text = (typeof value === "string" ? value : plain).trim();
  return text === "" ? undefined : text;
}

function readArguments(field: FrontmatterField, to: FieldReport): readonly string[] | undefined {
  const { value } = field;
  if (value === null) return undefined;
  const entries: readonly unknown[] =
    typeof value === "string" ? value.split(/[\s,]+/).filter((word) => word !== "") : entriesOf(value);
  const names = entries.map((entry) => (isRecord(entry) ? nameOf(entry) : entry));
  const usable = names.filter((name) => typeof name === "string").filter((name) => argumentName.test(name));
  if (usable.length < names.length) {
    const message = `An entry of \`${field.key}\` is not a name of letters, digits, \`_\` and \`-\`; it was left out.`;
    to.report("warning", "unreadable-field", message, skillFieldReaders.arguments.expected);
  }
  return usable.length === 0 ? undefined : usable;
}

const argumentName = /^[A-Za-z_][\w-]{0,63}$/;

function entriesOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return isRecord(value) ? Object.keys(value) : [value];
}

/** `{name: file, description: …}`, or `file: what it is`. */
function nameOf(entry: Readonly<Record<string, unknown>>): unknown {
  return Object.hasOwn(entry, "name") ? entry["name"] : Object.keys(entry)[0];
}

/** A word that is neither true nor false still shows that the author wanted to keep models away. */
function readGuard(field: FrontmatterField, to: FieldReport): boolean | undefined {
  let isReadable = true;
  const value = definitionFields.background.read(field, {
    ...to,
    unreadable: () => {
      isReadable = false;
      return undefined;
    },
  });
  if (isReadable) return value === undefined ? undefined : value === true;
  const message = `\`${field.key}\` is neither true nor false; it was read as true, so that no model calls the skill.`;
  to.report("warning", "unreadable-field", message, skillFieldReaders["disable-model-invocation"].expected);
  return true;
}

function readContext(field: FrontmatterField, to: FieldReport): "fork" | undefined {
  if (field.value === null) return undefined;
  const word = typeof field.value === "string" ? field.value.trim().toLowerCase() : undefined;
  if (word === "fork") return "fork";
  if (word !== undefined && ["", "inline", "main", "none"].includes(word)) return undefined;
  const written = JSON.stringify(field.value)?.slice(0, 80);
  const message = `Unknown context ${written}; the skill is loaded into the conversation that calls it.`;
  to.report("warning", "unknown-context", message, skillFieldReaders.context.expected);
  return undefined;
}

/** A path or a word holds no guard that could be lost; a broken structure might, and is refused by the reader of the entry. */
function readHooksField(field: FrontmatterField, to: FieldReport): unknown {
  if (field.value !== null && typeof field.value !== "object") {
    const message = `\`${field.key}\` is not a mapping of events; no hook was taken from it.`;
    to.report("warning", "unreadable-field", message, definitionFields.hooks.expected);
    return undefined;
  }
  return definitionFields.hooks.read(field, to);
}

function readPatterns(field: FrontmatterField, to: FieldReport): readonly string[] | undefined {
  const { value } = field;
  if (value === null) return undefined;
  const texts: readonly unknown[] = Array.isArray(value) ? value : [value];
  const patterns = texts.filter((text) => typeof text === "string").flatMap(splitPatterns);
  if (patterns.length > 0) return patterns;
  return isRecord(value) ? to.unreadable("it is not a list") : undefined;
}

/** Commas and line breaks separate, but not inside the braces of `*.{ts,tsx}`. */
function splitPatterns(text: string): string[] {
  const patterns = [""];
  let depth = 0;
  for (const character of text) {
    if (character === "{") depth += 1;
    if (character === "}") depth = Math.max(0, depth - 1);
    if (depth === 0 && /[,\n]/.test(character)) patterns.push("");
    else patterns[patterns.length - 1] += character;
  }
  return patterns.map((pattern) => pattern.trim()).filter((pattern) => pattern !== "");
}

function readShell(field: FrontmatterField, to: FieldReport): "bash" | "powershell" | undefined {
  if (field.value === null) return undefined;
  const word = String(field.value).trim().toLowerCase();
  if (word === "bash" || word === "powershell") return word;
  if (word === "pwsh") return "powershell";
  const message = `Unknown shell ${JSON.stringify(word.slice(0, 80))} for commands in a skill; the default shell is used.`;
  to.report("warning", "unknown-shell", message, skillFieldReaders.shell.expected);
  return undefined;
}
