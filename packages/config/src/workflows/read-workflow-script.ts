import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { type AnyNode, type Expression, type Node, type PrivateIdentifier, type Program, parse } from "acorn";
import type { WorkflowMeta, WorkflowPhase } from "./workflow-meta.ts";

/** A script that may run: its meta, and the expression that is its whole body, an async function without parameters. */
export interface WorkflowScript {
  readonly type: "script";
  readonly meta: WorkflowMeta;
  readonly code: string;
}

export interface BrokenScript {
  readonly type: "broken";
  readonly problem: Diagnostic;
}

/** The longest script that is read. */
export const maxScript = 524_288;

const opening = '(async () => {"use strict";';
const closing = "\n})";

/**
 * Reads the text of a workflow: `export const meta = {…}` as a pure literal, then the body of an async function. What could make two
 * runs of the same script differ, or loads other code, is refused with its place. Never throws.
 */
export function readWorkflowScript(text: string, file?: string): WorkflowScript | BrokenScript {
  const broken = (message: string, advice: string, place?: Place): BrokenScript => ({
    type: "broken",
    problem: {
      severity: "error",
      code: "workflow-broken",
      message,
      advice,
      file,
      ...place,
    },
  });
  if (text.length > maxScript)
    return broken(
      `The workflow has ${text.length} characters; the maximum is ${maxScript}.`,
      "Move data out of the script and pass it with args.",
    );
  const module = parseAs("module", text);
  if (module.type === "failed")
    return broken(
      `The workflow does not parse: ${module.message}`,
      "Write plain JavaScript: the body of an async function, without types and imports.",
      module.place,
    );
  const [first] = module.program.body;
  const reading = readMeta(first);
  if (reading.type === "failed") return broken(reading.message, metaAdvice, reading.place);
  const { start, end } = reading.node;
  // Blanked and not cut, so that every line of the script keeps its number.
  const body = `${text.slice(0, start)}${text.slice(start, end).replace(/[^\n\r\u2028\u2029]/g, " ")}${text.slice(end)}`;
  const code = `${opening}${body}${closing}`;
  // What runs is a script and no module, and the two differ in what is a comment; so what runs is what is looked through.
  const script = parseAs("script", code);
  if (script.type === "failed" || !isOneFunction(script.program, code))
    return broken(
      `The workflow does not parse as the body of a function${script.type === "failed" ? `: ${script.message}` : "."}`,
      "Remove syntax that is allowed only in modules, and comments that begin with <!--.",
      script.type === "failed" ? withoutOpening(script.place) : undefined,
    );
  const refused = findRefused(script.program);
  if (refused !== undefined)
    return broken(refused.message, refused.advice, withoutOpening(placeOf(refused.node)));
  return { type: "script", meta: reading.meta, code };
}

interface Place {
  readonly line: number;
  readonly column: number;
}

const metaAdvice =
  "Begin the file with `export const meta = { name: '…', description: '…' }`, without variables or calls in it.";

type Parsed =
  | { readonly type: "parsed"; readonly program: Program }
  | { readonly type: "failed"; readonly message: string; readonly place: Place | undefined };

export function parseAs(sourceType: "module" | "script", text: string): Parsed {
  try {
    const program = parse(text, {
      sourceType,
      ecmaVersion: "latest",
      locations: true,
      allowReturnOutsideFunction: sourceType === "module",
      allowAwaitOutsideFunction: sourceType === "module",
      allowHashBang: false,
    });
    return { type: "parsed", program };
  } catch (error) {
    const message = error instanceof Error ? error.message.replace(/ \(\d+:\d+\)$/, "") : String(error);
    const at = isRecord(error) ? error["loc"] : undefined;
    const place =
      isRecord(at) && typeof at["line"] === "number" && typeof at["column"] === "number"
        ? { line: at["line"], column: at["column"] + 1 }
        : undefined;
    return { type: "failed", message: `${message}.`, place };
  }
}

function placeOf({ loc }: Node): Place {
  return { line: loc?.start.line ?? 1, column: (loc?.start.column ?? 0) + 1 };
}

/** Only the first line of what runs is shifted. */
function withoutOpening(place: Place | undefined): Place | undefined {
  if (place === undefined || place.line > 1) return place;
  return { line: 1, column: Math.max(1, place.column - opening.length) };
}

function isOneFunction({ body }: Program, code: string): boolean {
  const [statement] = body;
  return (
    body.length === 1 &&
    statement?.type === "ExpressionStatement" &&
    statement.expression.type === "ArrowFunctionExpression" &&
    statement.expression.start === 1 &&
    statement.expression.end === code.length - 1
  );
}

type MetaReading =
  | { readonly type: "read"; readonly meta: WorkflowMeta; readonly node: Node }
  | { readonly type: "failed"; readonly message: string; readonly place: Place | undefined };

function readMeta(first: Program["body"][number] | undefined): MetaReading {
  const failed = (message: string, node?: Node): MetaReading => ({
    type: "failed",
    message,
    place: node === undefined ? { line: 1, column: 1 } : placeOf(node),
  });
  if (
    first?.type !== "ExportNamedDeclaration" ||
    first.declaration?.type !== "VariableDeclaration" ||
    first.declaration.kind !== "const" ||
    first.declaration.declarations.length !== 1
  )
    return failed("The first statement of a workflow must be `export const meta = {…}`.", first);
  const [declared] = first.declaration.declarations;
  if (declared?.id.type !== "Identifier" || declared.id.name !== "meta" || declared.init == null)
    return failed("The first statement of a workflow must be `export const meta = {…}`.", first);
  const value = literalOf(declared.init);
  if (value.type === "failed")
    return failed(`\`meta\` must be a plain literal, but contains ${value.what}.`, value.node);
  if (!isRecord(value.value)) return failed("`meta` must be an object.", declared.init);
  for (const key of ["name", "description"] as const) {
    const text = value.value[key];
    if (typeof text !== "string" || text.trim() === "")
      return failed(`\`meta.${key}\` must be a non-empty string.`, declared.init);
  }
  return { type: "read", meta: metaOf(value.value), node: first };
}

/** What is of another type than it should be is left out; files of other versions may hold more. */
function metaOf(value: JsonRecord): WorkflowMeta {
  const phases = Array.isArray(value["phases"]) ? value["phases"].filter(isPhase) : undefined;
  const whenToUse = value["whenToUse"];
  return {
    name: String(value["name"]),
    description: String(value["description"]),
    ...(typeof whenToUse === "string" ? { whenToUse } : {}),
    phases,
  };
}

function isPhase(value: unknown): value is WorkflowPhase {
  return isRecord(value) && typeof value["title"] === "string";
}

type Literal =
  | { readonly type: "value"; readonly value: unknown }
  | { readonly type: "failed"; readonly what: string; readonly node: Node };

function literalOf(node: Expression): Literal {
  const failed = (what: string, at: Node = node): Literal => ({ type: "failed", what, node: at });
  switch (node.type) {
    case "Literal":
      if (node.regex !== undefined || node.bigint != null)
        return failed("a regular expression or big number");
      return { type: "value", value: node.value };
    case "TemplateLiteral":
      if (node.expressions.length > 0) return failed("a template with values");
      return { type: "value", value: node.quasis[0]?.value.cooked ?? "" };
    case "UnaryExpression": {
      const inner = node.operator === "-" ? literalOf(node.argument) : undefined;
      if (inner?.type === "value" && typeof inner.value === "number")
        return { type: "value", value: -inner.value };
      return failed("an expression");
    }
    case "ArrayExpression": {
      const values: unknown[] = [];
      for (const element of node.elements) {
        if (element === null) return failed("a hole in a list");
        if (element.type === "SpreadElement") return failed("a spread", element);
        const value = literalOf(element);
        if (value.type === "failed") return value;
        values.push(value.value);
      }
      return { type: "value", value: values };
    }
    case "ObjectExpression": {
      const entries: [string, unknown][] = [];
      for (const property of node.properties) {
        if (property.type === "SpreadElement") return failed("a spread", property);
        if (property.computed || property.method || property.kind !== "init" || property.shorthand)
          return failed("a computed key, a method or a variable", property);
        const { key } = property;
        const name = keyName(key);
        if (name === undefined) return failed("a key that is not a name", property);
        const value = literalOf(property.value);
        if (value.type === "failed") return value;
        entries.push([name, value.value]);
      }
      return { type: "value", value: Object.fromEntries(entries) };
    }
    case "Identifier":
      return failed(`the variable ${node.name}`);
    case "CallExpression":
      return failed("a call");
    default:
      return failed("an expression");
  }
}

export function keyName(key: Expression | PrivateIdentifier): string | undefined {
  if (key.type === "Identifier") return key.name;
  return key.type === "Literal" ? String(key.value) : undefined;
}

interface Refused {
  readonly message: string;
  readonly advice: string;
  readonly node: Node;
}

const noClock = "Pass the time with args, or add it after the workflow has returned.";
const noChance = "For several independent answers, put a number into each prompt.";

/** The first use of a module, the clock or chance, in the order of the text. */
function findRefused(root: Program): Refused | undefined {
  const waiting: AnyNode[] = [root];
  const found: Refused[] = [];
  while (waiting.length > 0) {
    const node = waiting.pop();
    if (node === undefined) break;
    const refused = refuseNode(node);
    if (refused !== undefined) found.push({ ...refused, node });
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) waiting.push(child);
    }
  }
  return found.sort((a, b) => a.node.start - b.node.start)[0];
}

export function isNode(value: unknown): value is AnyNode {
  return isRecord(value) && typeof value["type"] === "string" && typeof value["start"] === "number";
}

function refuseNode(node: AnyNode): Omit<Refused, "node"> | undefined {
  if (node.type === "ImportExpression" || (node.type === "MetaProperty" && node.meta.name === "import"))
    return {
      message: "A workflow cannot import anything.",
      advice: "Leave work that needs files, programs or the network to an agent.",
    };
  if (node.type === "NewExpression" && isNamed(node.callee, "Date") && node.arguments.length === 0)
    return { message: "A workflow has no clock: `new Date()` is refused.", advice: noClock };
  if (node.type !== "CallExpression") return undefined;
  if (isNamed(node.callee, "Date"))
    return { message: "A workflow has no clock: `Date()` is refused.", advice: noClock };
  if (isMember(node.callee, "Date", "now"))
    return { message: "A workflow has no clock: `Date.now()` is refused.", advice: noClock };
  if (isMember(node.callee, "Math", "random"))
    return { message: "A workflow has no chance: `Math.random()` is refused.", advice: noChance };
  return undefined;
}

export function isNamed(node: AnyNode, name: string): boolean {
  return node.type === "Identifier" && node.name === name;
}

function isMember(node: AnyNode, object: string, property: string): boolean {
  if (node.type !== "MemberExpression" || !isNamed(node.object, object)) return false;
  return node.computed
    ? node.property.type === "Literal" && node.property.value === property
    : isNamed(node.property, property);
}
