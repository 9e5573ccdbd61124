import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import {
  type Diagnostic,
  hasErrors,
  type Issue,
  placeFindings,
  type Severity,
} from "@retinue/base/foundation/diagnostic.ts";
import {
  type AgentDefinition,
  type DefinitionKey,
  definitionKeys,
  fieldOf,
  type WrittenField,
} from "./agent-definition.ts";
import type { AgentScope, AgentSource } from "./agent-source.ts";
import { agentVocabulary, meaningOfKey } from "./agent-vocabulary.ts";
import { chooseFields } from "./choose-fields.ts";
import { type Frontmatter, type FrontmatterField, readFrontmatter } from "./read-frontmatter.ts";
import { isAdvisedAgentName, refuseAgentName } from "./refuse-agent-name.ts";

export interface ParseAgentOptions {
  /** Shown in problems; its base name serves where the file has no `name`. */
  readonly file?: string | undefined;
  readonly scope?: AgentScope | undefined;
  readonly plugin?: string | undefined;
}

export interface ParsedAgent {
  /** Absent when the text does not define a usable agent; `problems` then says why. */
  readonly definition?: AgentDefinition;
  readonly diagnostics: readonly Diagnostic[];
}

/** Far beyond any prompt a model should get, and small enough that a mistake costs no time. */
export const largestDefinition = 1024 * 1024;

const parseShape = checks.shape({ file: checks.text, scope: checks.text, plugin: checks.text });

/** Reads one agent definition file. Never throws; everything it repaired, ignored or refused is in `problems`. */
export function parseAgentDefinition(text: string, options: ParseAgentOptions = {}): ParsedAgent {
  checkArgument("The first argument of parseAgentDefinition()", checks.text, text);
  checkArgument("The options of parseAgentDefinition()", parseShape, options);
  const reading = readAgentFile(text, options);
  return reading.definition === undefined
    ? reading
    : applyScopeRules(reading.definition, reading.diagnostics);
}

/** The reading before scope rules take away what a plugin may not say. */
export function readAgentFile(text: string, options: ParseAgentOptions): ParsedAgent {
  const { file } = options;
  if (text.length > largestDefinition) return refuseLargeFile(file);
  const refuse = (code: string, message: string, advice: string, line?: number): ParsedAgent =>
    refuseFile({ code, message, advice, line }, file);
  const frontmatter = readFrontmatter(text, agentVocabulary);
  switch (frontmatter.type) {
    case "none":
      return refuse(
        "no-frontmatter",
        "The file does not start with a `---` block, so it defines no agent.",
        "Start it with `---`, `name: …`, `description: …`, `---`; or move it out of the agents folder.",
      );
    case "unclosed":
      return refuse(
        "frontmatter-unclosed",
        "The `---` block that opens here is never closed.",
        "Add a line `---` after the last field.",
        frontmatter.locate([])?.line,
      );
    case "too-large":
      return refuse(
        "too-large",
        "The frontmatter is larger than 256 KiB.",
        "Move long text below the closing `---`.",
      );
    case "read":
      return definitionFromFrontmatter(frontmatter, options);
  }
}

/** The answer to a file that is too large to be an agent, so that callers need not read it. */
export function refuseLargeFile(file: string | undefined): ParsedAgent {
  const message = "The file is larger than 1 MiB.";
  return refuseFile(
    { code: "too-large", message, advice: "Keep long material in files that the agent reads." },
    file,
  );
}

function refuseFile(
  refusal: { code: string; message: string; advice: string; line?: number | undefined },
  file: string | undefined,
): ParsedAgent {
  const { code, message, advice, line = 1 } = refusal;
  const place = { file, line, column: 1 };
  return { diagnostics: [{ severity: severityOf(code, file), code, message, advice, ...place }] };
}

/** A file without frontmatter is more often a note beside the agents than a broken agent. */
function severityOf(code: string, file: string | undefined): Severity {
  if (code !== "no-frontmatter") return "error";
  return /(?:^|[/\\])(?:readme|changelog|contributing|license|claude|agents|index)\.md$/i.test(file ?? "")
    ? "note"
    : "warning";
}

/** Settles name and description of fields that were read from a file or an object. */
export function definitionFromFrontmatter(
  frontmatter: Omit<Frontmatter, "type">,
  options: ParseAgentOptions,
): ParsedAgent {
  const { fields, written, issues } = readDefinitionFields(frontmatter);
  const { name, issues: nameFindings } = decideName(fields, written, options);
  const allFindings = [...issues, ...nameFindings, ...judgeDescription(fields, written, options)];
  const diagnostics = [
    ...frontmatter.diagnostics.map((diagnostic) =>
      options.file === undefined ? diagnostic : { ...diagnostic, file: options.file },
    ),
    ...placeFindings(allFindings, options.file, frontmatter.locate),
  ].sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  if (name === undefined || hasErrors(diagnostics)) return { diagnostics };
  const source: AgentSource = {
    scope: options.scope ?? "project",
    file: options.file,
    plugin: options.plugin,
  };
  const { name: _name, description = "", ...rest } = fields;
  return {
    definition: { name, description, prompt: frontmatter.body, ...rest, source, written },
    diagnostics,
  };
}

function decideName(
  fields: DefinitionFields,
  written: Readonly<Record<string, WrittenField>>,
  options: ParseAgentOptions,
): { name?: string; issues: Issue[] } {
  const path = [written["name"]?.key ?? "name"];
  if (fields.name === undefined) return nameFromFile(fields, options);
  const refusal = refuseAgentName(fields.name);
  if (refusal !== undefined) {
    const message = `The name ${JSON.stringify(fields.name.slice(0, 80))} cannot be used: ${refusal.reason}.`;
    const advice = "Use lower-case letters, digits and hyphens.";
    return { issues: [{ severity: "error", code: refusal.code, message, advice, path }] };
  }
  if (isAdvisedAgentName(fields.name)) return { name: fields.name, issues: [] };
  const message = `The name ${JSON.stringify(fields.name)} works, but is hard to type and to match.`;
  const advice = `Prefer ${JSON.stringify(advisedName(fields.name))}.`;
  return { name: fields.name, issues: [{ severity: "note", code: "name-style", message, advice, path }] };
}

function advisedName(name: string): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
  return plain === "" ? "my-agent" : plain;
}

function nameFromFile(
  fields: DefinitionFields,
  options: ParseAgentOptions,
): { name?: string; issues: Issue[] } {
  const path = ["name"];
  const base = options.file?.replace(/^.*[/\\]/, "").replace(/\.md$/i, "");
  if (fields.description === undefined && options.scope !== "plugin") {
    const message =
      "There is neither a `name` nor a `description`, so this is taken for documentation, not for an agent.";
    const advice = "Add both, or move the file out of the agents folder.";
    return { issues: [{ severity: "warning", code: "no-name", message, advice, path }] };
  }
  if (base === undefined || refuseAgentName(base) !== undefined) {
    const message = "There is no `name`, and the file's name cannot be used as one.";
    return { issues: [{ severity: "error", code: "no-name", message, advice: "Add `name: …`.", path }] };
  }
  const message = `There is no \`name\`; the file's name is used: ${base}.`;
  return {
    name: base,
    issues: [{ severity: "warning", code: "no-name", message, advice: `Add \`name: ${base}\`.`, path }],
  };
}

function judgeDescription(
  fields: DefinitionFields,
  written: Readonly<Record<string, WrittenField>>,
  options: ParseAgentOptions,
): Issue[] {
  if (fields.description !== undefined) return [];
  if (fields.name === undefined && options.scope !== "plugin") return [];
  const issue = {
    code: "no-description",
    message: "There is no `description`; it is how a model decides when to use the agent.",
    advice: "Add `description: <what it does>. Use when <trigger>. Not for <limit>.`",
    path: [written["description"]?.key ?? "description"],
  };
  return [{ severity: options.scope === "plugin" ? "warning" : "error", ...issue }];
}

/** Takes away what the scope of a definition may not decide, with a warning for each field. */
function applyScopeRules(definition: AgentDefinition, diagnostics: readonly Diagnostic[]): ParsedAgent {
  if (definition.source.scope !== "plugin") return { definition, diagnostics };
  const warnings: Diagnostic[] = [];
  const kept: { -readonly [K in keyof AgentDefinition]: AgentDefinition[K] } = { ...definition };
  for (const key of definitionKeys) {
    if (fieldOf(key).notInPlugins !== true || kept[key] === undefined) continue;
    delete kept[key];
    warnings.push({
      severity: "warning",
      code: "ignored-in-plugin",
      message: `\`${key}\` is ignored in a plugin's agent.`,
      advice: `Copy the agent to your own agents folder if it needs \`${key}\`.`,
      file: definition.source.file,
      ...definition.written[key]?.place,
    });
  }
  warnings.sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  return { definition: kept, diagnostics: [...diagnostics, ...warnings] };
}

/** The fields of a definition as understood, before a name and a source are settled. */
type DefinitionFields = Partial<Omit<AgentDefinition, "prompt" | "source" | "written">>;

interface FieldsReading {
  readonly fields: DefinitionFields;
  readonly written: Readonly<Record<string, WrittenField>>;
  readonly issues: readonly Issue[];
}

/** Turns the entries of a frontmatter into typed fields. A field that limits the agent and cannot be read is an error. */
function readDefinitionFields(frontmatter: Pick<Frontmatter, "fields" | "repeated">): FieldsReading {
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
  const effect = fieldOf(meant).addsUp === true ? "both hold" : "it counts only where that says nothing";
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
    advice: nearest === undefined ? undefined : `Did you mean \`${nearest}\`?`,
    path: [key],
  };
}

function readField(key: DefinitionKey, field: FrontmatterField, issues: Issue[]): unknown {
  const path = [field.key];
  const reader = fieldOf(key);
  const unreadable = (reason: string, advice: string): undefined => {
    const { restricts = false } = reader;
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
    issues.push({ severity, code, message, advice, path });
  };
  if (field.unreadable !== undefined) return unreadable(field.unreadable, reader.expected);
  return reader.read(field, {
    report,
    unreadable: (reason) => unreadable(reason, reader.expected),
    issues,
  });
}

/** Of a limit that is several times, the narrower meaning holds; elsewhere the last one. Values in file order. */
function combineRepeated(key: DefinitionKey, values: readonly unknown[]): unknown {
  const given = values.filter((value) => value !== undefined);
  const { addsUp, narrower } = fieldOf(key);
  if (addsUp === true) return joined(given);
  if (narrower === undefined) return given.at(-1);
  return given.reduce<unknown>(
    (earlier, later) => (earlier === undefined ? later : narrower(earlier, later)),
    undefined,
  );
}

/** A field that is under several spellings: denials and hooks of all hold; else the first that says anything. */
function combineSpellings(key: DefinitionKey, readers: readonly (() => unknown)[]): unknown {
  if (fieldOf(key).addsUp === true)
    return joined(readers.map((read) => read()).filter((value) => value !== undefined));
  for (const read of readers) {
    const value = read();
    if (value !== undefined) return value;
  }
  return undefined;
}

function joined(lists: readonly unknown[]): unknown {
  return lists.length < 2 ? lists[0] : [...new Set(lists.flat())];
}
