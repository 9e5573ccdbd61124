import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type {
  AnonymousFunctionDeclaration,
  AnyNode,
  ArrowFunctionExpression,
  FunctionDeclaration,
  FunctionExpression,
} from "acorn";
import { isNamed, isNode, keyName, parseAs } from "./read-workflow-script.ts";

/** A place in a script that starts agents. */
export interface PlannedStep {
  /** How often it starts one, as far as that can be read from the script and its arguments. */
  readonly times: number;
  /** It may be more: that is decided while the script runs. */
  readonly isOpen: boolean;
  readonly phase?: string;
  /** The text of its prompt, without what is put into it while it runs. */
  readonly prompt: string;
  readonly options: Readonly<
    Partial<Record<"label" | "agentType" | "model" | "effort" | "isolation", string>>
  >;
  /** The commands of its `verify`; undefined in the place of one that is decided while the script runs. */
  readonly checks: readonly (string | undefined)[];
}

export interface PlannedSteps {
  readonly steps: readonly PlannedStep[];
  /** It runs other workflows, whose steps are not in the list. */
  readonly startsWorkflows: boolean;
}

/** More agents are started by no run. */
const maxSteps = 1000;

/** What a script would start, without running it. `args` is what it gets; a script that does not parse starts nothing. */
export function plannedSteps(text: string, args: unknown): PlannedSteps {
  const parsed = parseAs("module", text);
  if (parsed.type === "failed") return { steps: [], startsWorkflows: false };
  return readSteps(parsed.program, readNames(parsed.program, args));
}

/** How often the code that is looked at runs. */
interface Scale {
  readonly times: number;
  readonly isOpen: boolean;
}

type FunctionNode =
  | FunctionDeclaration
  | AnonymousFunctionDeclaration
  | FunctionExpression
  | ArrowFunctionExpression;

type Value = { readonly value: unknown } | undefined;

const eachItem: ReadonlySet<string> = new Set([
  "map",
  "flatMap",
  "forEach",
  "filter",
  "find",
  "some",
  "every",
]);
const asMany: ReadonlySet<string> = new Set([
  ...["map", "filter", "slice", "sort", "reverse", "toSorted", "toReversed", "entries", "concat"],
]);

/** How often something runs for each item of a list. */
function times(scale: Scale, size: number | undefined): Scale {
  if (size === undefined) return { ...scale, isOpen: true };
  return { times: Math.min(maxSteps, scale.times * size), isOpen: scale.isOpen };
}

type Names = ReturnType<typeof readNames>;

/** What the names of a script refer to, and what that makes of its expressions. */
function readNames(program: AnyNode, args: unknown) {
  const values = new Map<string, AnyNode>();
  /** Functions that are called by their names. */
  const functions = new Map<string, FunctionNode>();
  /** Names whose value is being looked for, and functions that are being walked: neither leads into itself. */
  const open = new Set<AnyNode>();

  function declare(node: AnyNode): void {
    if (node.type === "FunctionDeclaration" && node.id !== null) functions.set(node.id.name, node);
    if (node.type === "VariableDeclarator" && node.id.type === "Identifier" && node.init != null) {
      if (isFunction(node.init)) functions.set(node.id.name, node.init);
      else values.set(node.id.name, node.init);
    }
    for (const child of childrenOf(node)) declare(child);
  }

  function guarded<Result>(node: AnyNode, look: () => Result): Result | undefined {
    if (open.has(node)) return undefined;
    open.add(node);
    try {
      return look();
    } finally {
      open.delete(node);
    }
  }

  /** The value of an expression, where arguments and literals decide it. */
  function knownOf(node: AnyNode): Value {
    switch (node.type) {
      case "Literal":
        return { value: node.value };
      case "TemplateLiteral":
        return node.expressions.length === 0 ? { value: node.quasis[0]?.value.cooked ?? "" } : undefined;
      case "Identifier": {
        if (node.name === "args") return { value: args };
        if (node.name === "undefined") return { value: undefined };
        const init = values.get(node.name);
        return init === undefined ? undefined : guarded(init, () => knownOf(init));
      }
      case "MemberExpression":
        return memberOf(knownOf(node.object), node.computed ? undefined : keyName(node.property as never));
      case "ChainExpression":
        return knownOf(node.expression);
      case "ArrayExpression": {
        const items = node.elements.map((element) => element && knownOf(element));
        return items.every((item) => item != null) ? { value: items.map((item) => item?.value) } : undefined;
      }
      case "LogicalExpression": {
        const left = knownOf(node.left);
        if (left === undefined) return undefined;
        const takesLeft =
          node.operator === "??" ? left.value != null : Boolean(left.value) === (node.operator === "||");
        return takesLeft ? left : knownOf(node.right);
      }
      case "UnaryExpression": {
        const inner = node.operator === "!" ? knownOf(node.argument) : undefined;
        return inner && { value: !inner.value };
      }
      case "ConditionalExpression": {
        const test = knownOf(node.test);
        return test && knownOf(test.value ? node.consequent : node.alternate);
      }
      default:
        return undefined;
    }
  }

  /** How many items a list has; undefined where that is not known before. */
  function sizeOf(node: AnyNode | undefined): number | undefined {
    if (node === undefined) return undefined;
    const known = knownOf(node);
    if (known !== undefined) return Array.isArray(known.value) ? known.value.length : undefined;
    switch (node.type) {
      case "Identifier": {
        const init = values.get(node.name);
        return init === undefined ? undefined : guarded(init, () => sizeOf(init));
      }
      case "ArrayExpression":
        return node.elements.some((element) => element?.type === "SpreadElement")
          ? undefined
          : node.elements.length;
      case "AwaitExpression":
        return sizeOf(node.argument);
      case "LogicalExpression":
        return sizeOf(node.left) ?? sizeOf(node.right);
      case "CallExpression": {
        const { callee, arguments: given } = node;
        if (isNamed(callee, "parallel") || isNamed(callee, "pipeline")) return sizeOf(given[0]);
        if (isArrayFrom(callee)) return lengthOf(given[0]) ?? sizeOf(given[0]);
        return callee.type === "MemberExpression" && asMany.has(methodOf(callee) ?? "")
          ? sizeOf(callee.object)
          : undefined;
      }
      default:
        return undefined;
    }
  }

  /** `Array.from({ length: 5 })` */
  function lengthOf(node: AnyNode | undefined): number | undefined {
    if (node?.type !== "ObjectExpression") return undefined;
    const length = propertyOf(node, "length");
    const value = length && knownOf(length)?.value;
    return typeof value === "number" && value >= 0 ? Math.trunc(value) : undefined;
  }

  /** What is known of a text, without what is put into it while the script runs. */
  function textOf(node: AnyNode): string {
    const known = knownOf(node);
    if (known !== undefined) return typeof known.value === "string" ? known.value : "";
    if (node.type === "BinaryExpression") return `${textOf(node.left)}${textOf(node.right)}`;
    if (node.type === "TemplateLiteral") return node.quasis.map(({ value }) => value.cooked ?? "").join("");
    return "";
  }

  declare(program);
  return { functions, guarded, knownOf, sizeOf, lengthOf, textOf };
}

function readSteps(
  program: AnyNode,
  { functions, guarded, knownOf, sizeOf, lengthOf, textOf }: Names,
): PlannedSteps {
  const steps: PlannedStep[] = [];
  const used = new Set<AnyNode>();
  let phase: string | undefined;
  let startsWorkflows = false;

  /** What is called: a function written here, or one that has a name. */
  function walkCalled(node: AnyNode, scale: Scale): void {
    const called = node.type === "Identifier" ? functions.get(node.name) : node;
    if (called === undefined) return;
    used.add(called);
    const isNew = guarded(called, () => {
      walk(isFunction(called) ? called.body : called, scale);
      return true;
    });
    // A function that calls itself does so as often as it likes.
    if (isNew === undefined)
      for (const [at, step] of steps.entries())
        if (inside(step, called)) steps[at] = { ...step, isOpen: true };
  }

  const places = new Map<PlannedStep, number>();
  const inside = (step: PlannedStep, { start, end }: AnyNode): boolean => {
    const place = places.get(step);
    return place !== undefined && place >= start && place < end;
  };

  function walkCall(node: Extract<AnyNode, { type: "CallExpression" }>, scale: Scale): void {
    const { callee, arguments: given } = node;
    const [first, ...others] = given;
    if (isNamed(callee, "agent")) addStep(node, scale);
    if (isNamed(callee, "workflow")) startsWorkflows = true;
    if (isNamed(callee, "phase") && first !== undefined) {
      const title = knownOf(first)?.value;
      phase = typeof title === "string" ? title : undefined;
    }
    if (isNamed(callee, "pipeline")) {
      if (first !== undefined) walk(first, scale);
      for (const stage of others) walkCalled(stage, times(scale, sizeOf(first)));
      return;
    }
    const isEach = callee.type === "MemberExpression" && eachItem.has(methodOf(callee) ?? "");
    if (isEach || isArrayFrom(callee)) {
      const list = isEach ? callee.object : first;
      if (list !== undefined) walk(list, scale);
      const each = times(scale, isEach ? sizeOf(list) : (lengthOf(list) ?? sizeOf(list)));
      for (const call of isEach ? given : others) walkCalled(call, each);
      return;
    }
    if (callee.type === "Identifier" && functions.has(callee.name)) walkCalled(callee, scale);
    else walk(callee, scale);
    // A function that is handed on, as to a promise, is called once.
    for (const each of given)
      if (each.type === "Identifier" && functions.has(each.name)) walkCalled(each, scale);
      else walk(each, scale);
  }

  function walk(node: AnyNode, scale: Scale): void {
    switch (node.type) {
      case "CallExpression":
        walkCall(node, scale);
        return;
      case "FunctionDeclaration":
        return;
      case "VariableDeclarator":
        if (node.init != null && !isFunction(node.init)) walk(node.init, scale);
        return;
      case "IfStatement":
      case "ConditionalExpression": {
        const test = knownOf(node.test);
        walk(node.test, scale);
        if (test === undefined || test.value) walk(node.consequent, scale);
        if ((test === undefined || !test.value) && node.alternate != null) walk(node.alternate, scale);
        return;
      }
      case "ForOfStatement":
        walk(node.right, scale);
        walk(node.body, times(scale, sizeOf(node.right)));
        return;
      case "ForStatement":
      case "ForInStatement":
      case "WhileStatement":
      case "DoWhileStatement":
        for (const child of childrenOf(node)) walk(child, { ...scale, isOpen: true });
        return;
      default:
        for (const child of childrenOf(node)) walk(child, scale);
    }
  }

  function addStep(
    { arguments: given, start }: Extract<AnyNode, { type: "CallExpression" }>,
    scale: Scale,
  ): void {
    if (scale.times === 0) return;
    const [prompt, options] = given;
    const named: Record<string, string> = {};
    let own = phase;
    for (const property of options?.type === "ObjectExpression" ? options.properties : []) {
      if (property.type !== "Property" || property.computed) continue;
      const name = keyName(property.key) ?? "";
      const value = knownOf(property.value)?.value;
      if (name === "phase") own = typeof value === "string" ? value : undefined;
      else if (stepOptions.has(name) && typeof value === "string") named[name] = value;
    }
    const checks = checksOf(options, knownOf);
    const step = { ...scale, prompt: prompt === undefined ? "" : textOf(prompt), options: named, checks };
    steps.push(own === undefined ? step : { ...step, phase: own });
    places.set(steps.at(-1) ?? step, start);
  }

  walk(program, { times: 1, isOpen: false });
  // A function that nothing was seen to call may be called in a way that is not understood.
  for (const called of functions.values())
    if (!used.has(called)) walkCalled(called, { times: 1, isOpen: true });
  return { steps, startsWorkflows };
}

const stepOptions: ReadonlySet<string> = new Set(["label", "agentType", "model", "effort", "isolation"]);

/** The commands that `verify` in the options of a step names. */
function checksOf(options: AnyNode | undefined, knownOf: (node: AnyNode) => Value): PlannedStep["checks"] {
  const commandsOf = (node: AnyNode): PlannedStep["checks"] => {
    if (node.type === "ArrayExpression")
      return node.elements.flatMap((element) => (element === null ? [] : commandsOf(element)));
    const run = node.type === "ObjectExpression" ? propertyOf(node, "run") : node;
    const known = run && knownOf(run);
    if (known === undefined) return [undefined];
    const given: readonly unknown[] = Array.isArray(known.value) ? known.value : [known.value];
    return given.flatMap((each) => (each == null ? [] : [commandOf(each)]));
  };
  const verify = options?.type === "ObjectExpression" ? propertyOf(options, "verify") : undefined;
  return verify === undefined ? [] : commandsOf(verify);
}

function propertyOf(
  { properties }: Extract<AnyNode, { type: "ObjectExpression" }>,
  name: string,
): AnyNode | undefined {
  const found = properties.find(
    (property) => property.type === "Property" && !property.computed && keyName(property.key) === name,
  );
  return found?.type === "Property" ? found.value : undefined;
}

function commandOf(value: unknown): string | undefined {
  const run = isRecord(value) ? value["run"] : value;
  return typeof run === "string" ? run : undefined;
}

function memberOf(object: Value, name: string | undefined): Value {
  if (object === undefined || name === undefined) return undefined;
  const { value } = object;
  if (Array.isArray(value)) return name === "length" ? { value: value.length } : undefined;
  return isRecord(value) ? { value: Object.hasOwn(value, name) ? value[name] : undefined } : undefined;
}

function methodOf(callee: Extract<AnyNode, { type: "MemberExpression" }>): string | undefined {
  return callee.computed ? undefined : keyName(callee.property);
}

function isArrayFrom(callee: AnyNode): boolean {
  return callee.type === "MemberExpression" && isNamed(callee.object, "Array") && methodOf(callee) === "from";
}

function isFunction(node: AnyNode): node is FunctionNode {
  return (
    node.type === "ArrowFunctionExpression" ||
    node.type === "FunctionExpression" ||
    node.type === "FunctionDeclaration"
  );
}

function childrenOf(node: AnyNode): readonly AnyNode[] {
  return Object.values(node).flatMap((value) => (Array.isArray(value) ? value : [value]).filter(isNode));
}
