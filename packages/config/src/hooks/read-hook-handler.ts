import type { DocumentPath, Issue } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, type JsonRecord, kindOf, quote } from "@retinue/base/foundation/json-record.ts";
import { type JsonSchema, orNull, schemas } from "@retinue/base/foundation/json-schema.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import type { HookHandler, HookHandlerType } from "./hook-rule.ts";

export interface HandlerReading {
  /** Absent when the handler cannot be run as it was meant. */
  readonly handler?: HookHandler;
  readonly issues: readonly Issue[];
}

const hookHandlerTypes: readonly HookHandlerType[] = ["command", "http", "prompt", "agent", "mcp_tool"];

/** Reads one handler. What decides what runs, or when, must be right; a wrong detail is only left out. */
export function readHookHandler(value: unknown, path: DocumentPath): HandlerReading {
  if (!isRecord(value)) return refused(path, `A hook must be an object, but here it is ${kindOf(value)}`);
  const type = readType(value);
  if (type === undefined) return refused(path, typeComplaint(value), typeAdvice(value));
  const broken = brokenField(value, type);
  if (broken !== undefined) return refused([...path, broken.name], broken.message, broken.advice);
  const issues: Issue[] = [];
  const entries: [string, unknown][] = [["type", type]];
  for (const [name, rule] of fields) {
    if (!Object.hasOwn(value, name) || (value[name] ?? null) === null) continue;
    if (rule.types !== undefined && !rule.types.includes(type)) continue;
    const read = rule.read(value[name]);
    if (read !== undefined) entries.push([name, read]);
    else issues.push(wrongDetail(name, rule.expected, value[name], [...path, name]));
  }
  // Each reader in the table gives the type that HookHandler has for its field.
  return { handler: Object.fromEntries(entries) as unknown as HookHandler, issues };
}

const neededFields: Readonly<Record<HookHandlerType, readonly string[]>> = {
  command: ["command"],
  http: ["url"],
  prompt: ["prompt"],
  agent: ["prompt"],
  mcp_tool: ["server", "tool"],
};

/** Without a `type`, the field that only one type has shows which it is. */
function readType(value: JsonRecord): HookHandlerType | undefined {
  const written = value["type"];
  if (written !== undefined && written !== null) return hookHandlerTypes.find((type) => type === written);
  return inferenceOrder.find((type) => neededFields[type].every((field) => Object.hasOwn(value, field)));
}

const inferenceOrder: readonly HookHandlerType[] = ["command", "http", "mcp_tool", "prompt"];

function typeComplaint(value: JsonRecord): string {
  const written = value["type"];
  return written === undefined || written === null
    ? "This hook has no type and none of the fields command, url, prompt or server and tool"
    : `Unknown hook type ${quote(written)}`;
}

function typeAdvice(value: JsonRecord): string {
  const nearest =
    typeof value["type"] === "string" ? nearestName(value["type"], hookHandlerTypes) : undefined;
  return nearest === undefined
    ? `The types are ${hookHandlerTypes.join(", ")}.`
    : `Did you mean "${nearest}"?`;
}

interface BrokenField {
  readonly name: string;
  readonly message: string;
  readonly advice: string;
}

/** A field without which the hook would run something else, or at another time, than its writer meant. */
function brokenField(value: JsonRecord, type: HookHandlerType): BrokenField | undefined {
  const missing = neededFields[type].find((field) => !isText(value[field]));
  if (missing !== undefined) {
    const message = Object.hasOwn(value, missing)
      ? `The field "${missing}" of a ${type} hook must be a non-empty string, but here it is ${kindOf(value[missing])}`
      : `A hook of type ${type} needs the field "${missing}"`;
    return { name: missing, message, advice: `Add "${missing}" with what the hook is to do.` };
  }
  const condition = value["if"];
  if (condition !== undefined && condition !== null && !isText(condition)) {
    const message = `The field "if" must be one permission rule, but here it is ${kindOf(condition)}`;
    return { name: "if", message, advice: 'Write a rule, as in "Bash(git *)", or leave "if" out.' };
  }
  const args = value["args"];
  if (type === "command" && args !== undefined && args !== null && !isTextList(args)) {
    const message = `The field "args" must be a list of strings, but here it is ${kindOf(args)}`;
    return {
      name: "args",
      message,
      advice: 'Write "args": ["first", "second"], or put the arguments into "command".',
    };
  }
  return undefined;
}

function refused(path: DocumentPath, complaint: string, advice?: string): HandlerReading {
  return {
    issues: [
      {
        severity: "warning",
        code: "hook-handler-invalid",
        message: `${complaint}; the hook was left out.`,
        advice: advice ?? 'Write {"type": "command", "command": "…"}.',
        path,
      },
    ],
  };
}

type FieldReader = (value: unknown) => unknown;

interface FieldRule {
  readonly read: FieldReader;
  readonly expected: string;
  readonly schema: JsonSchema;
  readonly means: string;
  readonly types?: readonly HookHandlerType[];
}

type Kind = Pick<FieldRule, "read" | "expected" | "schema">;

const text: Kind = { read: textOrNothing, expected: "a string", schema: schemas.text };
const texts: Kind = {
  read: textListOrNothing,
  expected: "a list of strings",
  schema: { type: "array", items: { type: ["string", "number"] } },
};
const headers: Kind = {
  read: headersOrNothing,
  expected: "an object of strings",
  schema: { type: "object", additionalProperties: { type: ["string", "number"] } },
};
const record: Kind = { read: recordOrNothing, expected: "an object", schema: { type: "object" } };
const seconds: Kind = {
  read: secondsOrNothing,
  expected: "a number of seconds above 0",
  schema: { anyOf: [{ type: "number", exclusiveMinimum: 0 }, schemas.numberText] },
};
const flag: Kind = { read: flagOrNothing, expected: "true or false", schema: schemas.flag };

function oneOf(first: string, second: string): Kind {
  const choices = [first, second];
  return {
    read: (value) => choices.find((choice) => choice === value),
    expected: `"${first}" or "${second}"`,
    schema: { enum: choices },
  };
}

const fields: ReadonlyMap<string, FieldRule> = new Map<string, FieldRule>([
  [
    "command",
    { ...text, types: ["command"], means: "The command line, or the program where there are args." },
  ],
  ["args", { ...texts, types: ["command"], means: "Arguments of the program, without a shell." }],
  ["url", { ...text, types: ["http"], means: "The URL that the event is sent to, as JSON." }],
  ["headers", { ...headers, types: ["http"], means: "Headers of the request." }],
  ["allowedEnvVars", { ...texts, types: ["http"], means: "Environment variables that headers may use." }],
  [
    "prompt",
    { ...text, types: ["prompt", "agent"], means: "The prompt about the event, for a model or an agent." },
  ],
  ["model", { ...text, types: ["prompt", "agent"], means: "The model to ask." }],
  ["server", { ...text, types: ["mcp_tool"], means: "The MCP server of the tool." }],
  ["tool", { ...text, types: ["mcp_tool"], means: "The tool that is called." }],
  ["input", { ...record, types: ["mcp_tool"], means: "The input of the tool." }],
  ["if", { ...text, means: "A permission rule: the hook runs only for calls that it matches." }],
  ["timeout", { ...seconds, means: "Timeout in seconds." }],
  ["async", { ...flag, types: ["command"], means: "The run does not wait for it." }],
  [
    "asyncRewake",
    { ...flag, types: ["command"], means: "Like async, but exit code 2 is reported to the model." },
  ],
  ["shell", { ...oneOf("bash", "powershell"), types: ["command"], means: "The shell of the command." }],
  [
    "onFailure",
    {
      ...oneOf("continue", "block"),
      types: ["command", "http"],
      means: "Whether a failing hook blocks the event.",
    },
  ],
  ["statusMessage", { ...text, means: "Shown while it runs." }],
  ["once", { ...flag, means: "It runs only once per session." }],
]);

/** What `readHookHandler` takes: each type with its fields, or the fields alone where they show the type. */
export function hookHandlerDefinitions(): Readonly<Record<string, JsonSchema>> {
  const fieldsOf = (type: HookHandlerType): JsonSchema => {
    const known = [...fields].filter(([, { types }]) => types?.includes(type) !== false);
    const properties = known.map(([name, { schema, means }]) => [
      name,
      { description: means, ...(neededFields[type].includes(name) ? schema : orNull(schema)) },
    ]);
    return { properties: Object.fromEntries(properties), required: neededFields[type] };
  };
  const has = (type: HookHandlerType) => ({ allOf: [{ $ref: `#/definitions/${type}Hook` }] });
  const named = hookHandlerTypes.map((type) => ({
    properties: { type: { description: "The kind of hook.", const: type } },
    required: ["type"],
    ...has(type),
  }));
  const inferred = inferenceOrder.map((type, at) => {
    const earlier = inferenceOrder.slice(0, at).map((each) => ({ required: neededFields[each] }));
    return {
      properties: { type: schemas.null },
      ...has(type),
      ...(at === 0 ? {} : { not: { anyOf: earlier } }),
    };
  });
  return {
    ...Object.fromEntries(hookHandlerTypes.map((type) => [`${type}Hook`, fieldsOf(type)])),
    hookHandler: { type: "object", anyOf: [...named, ...inferred] },
  };
}

function wrongDetail(name: string, expected: string, value: unknown, path: DocumentPath): Issue {
  return {
    severity: "warning",
    code: "hook-field-invalid",
    message: `The field "${name}" must be ${expected}, but here it is ${quote(value)}; it was left out.`,
    advice: `Write ${expected}, or remove "${name}".`,
    path,
  };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

function textOrNothing(value: unknown): string | undefined {
  return isText(value) ? value : undefined;
}

function isTextList(value: unknown): value is (string | number)[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string" || Number.isFinite(entry));
}

function textListOrNothing(value: unknown): string[] | undefined {
  return isTextList(value) ? value.map(String) : undefined;
}

function recordOrNothing(value: unknown): JsonRecord | undefined {
  return isRecord(value) ? value : undefined;
}

function headersOrNothing(value: unknown): Readonly<Record<string, string>> | undefined {
  if (!isRecord(value)) return undefined;
  const entries = Object.entries(value).map(
    ([name, text]) => [name, typeof text === "number" ? String(text) : text] as const,
  );
  return entries.every((entry): entry is readonly [string, string] => typeof entry[1] === "string")
    ? Object.fromEntries(entries)
    : undefined;
}

function secondsOrNothing(value: unknown): number | undefined {
  const seconds = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof seconds === "number" && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;
}

function flagOrNothing(value: unknown): boolean | undefined {
  if (value === "true") return true;
  if (value === "false") return false;
  return typeof value === "boolean" ? value : undefined;
}
