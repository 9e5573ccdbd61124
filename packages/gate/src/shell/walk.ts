import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ParsedScript, SyntaxNode } from "unbash";
import type { Directories, Flow, Scene, State, Value, Variables, Walk, Word } from "./model.ts";
import { isSteeringVariable } from "./private-name.ts";

/** A command that takes more work than this to be understood is shown to a person. */
export const maxSteps = 400_000;

/** Counts work before it is done, so that no command can make the one that judges it slow. What was found stays. */
export function spend(walk: Walk, steps: number): void {
  walk.steps += steps;
  if (walk.steps > maxSteps) throw new RetinueError("too-complex", "it is too complex to be analyzed");
}

/** Reads shell text; every text that is read again, such as that of `eval`, counts again. */
export function parse(walk: Walk, text: string): ParsedScript {
  spend(walk, text.length);
  return walk.grammar.parse(text);
}

export function markOpaque(walk: Walk, reason: string): void {
  walk.opaque ??= reason;
}

/** Walks every script below a node that is not understood, so that deny rules see its commands. */
export function visitNested(walk: Walk, node: SyntaxNode, scene: Scene): void {
  spend(walk, 1);
  walk.grammar.forEachChild(node, (child) => {
    const isScript =
      child.type === "CommandExpansion" ||
      child.type === "ProcessSubstitution" ||
      child.type === "ArithmeticCommandExpansion";
    if (!isScript) visitNested(walk, child, scene);
    else if (child.script !== undefined) walk.walkScript(walk, child.script, { ...scene, substituted: true });
  });
}

/** Notes that a variable is set, in whatever way: every assignment goes through here. */
export function assign(walk: Walk, name: string, value: Value, { state }: Scene): State {
  if (!/^[A-Za-z_]\w*$/.test(name)) markOpaque(walk, "it is not clear which variable is set");
  else if (isSteeringVariable(name)) markOpaque(walk, `the variable ${name} changes what commands do`);
  spend(walk, state.variables.size);
  return { ...state, variables: new Map(state.variables).set(name, value) };
}

/** What a variable holds after it was set to a word. */
export function heldBy({ literal, value, numeric, temporary }: Word): Value {
  if (literal) return { type: "text", text: value };
  if (numeric === true) return { type: "number" };
  return { type: "unknown", ...(temporary === true && { temporary }) };
}

interface AssignedNames {
  readonly names: ReadonlyMap<string, Value>;
  /** A command changes the directory. */
  readonly moves: boolean;
}

const movers = /^(?:cd|pushd|popd|eval|source|\.|builtin|command)$/;

/** The variables that commands set which run more than once, and what they can hold at the start of any run. */
export function assignedNames(walk: Walk, nodes: readonly SyntaxNode[], state: State): AssignedNames {
  const names = new Map<string, Value>();
  let moves = false;
  const note = (name: string, numeric: boolean, pattern = false): void => {
    const before = names.get(name) ?? state.variables.get(name);
    const isCounter = numeric && (before === undefined || isNumber(before));
    const isPattern = pattern || mayBePattern(before);
    const isUnset = before === undefined || mayBeUnset(before);
    if (isCounter) names.set(name, { type: "number", ...(isUnset && { mayBeUnset: true as const }) });
    else names.set(name, { type: "unknown", ...(isPattern && { pattern: true as const }) });
  };
  const visit = (node: SyntaxNode): void => {
    spend(walk, 1);
    if (node.type === "Assignment")
      note(
        node.name,
        node.append !== true && isNumeric(node.value),
        "text" in node.value && /[*?[]/.test(node.value.text),
      );
    if (node.type === "For" || node.type === "Select") note(node.name.value, false);
    if (node.type === "ArithmeticCommand")
      for (const [, name = ""] of node.body.matchAll(/([A-Za-z_]\w*)/g)) note(name, true);
    if (node.type === "ArithmeticFor")
      for (const part of [node.initialize, node.test, node.update])
        if (part !== undefined) for (const name of countedNames(walk, part)) note(name, true);
    if (node.type === "Command") {
      const command = node.name?.value ?? "";
      moves ||= movers.test(command);
      if (command === "read")
        for (const word of node.args)
          if (word.type === "Word" && /^[A-Za-z_]\w*$/.test(word.value)) note(word.value, false);
    }
    walk.grammar.forEachChild(node, visit);
  };
  for (const node of nodes) visit(node);
  return { names, moves };
}

/** The variables that an arithmetic expression sets. */
function countedNames(walk: Walk, node: SyntaxNode): readonly string[] {
  spend(walk, 1);
  const target =
    (node.type === "ArithmeticBinary" && /^(?:[-+*/%&|^]|<<|>>)?=$/.test(node.operator) && node.left) ||
    (node.type === "ArithmeticUnary" && /^(?:\+\+|--)$/.test(node.operator) && node.operand);
  const names = target !== false && target.type === "ArithmeticWord" ? [target.value] : [];
  walk.grammar.forEachChild(node, (child) => names.push(...countedNames(walk, child)));
  return names;
}

function isNumeric(value: SyntaxNode): boolean {
  if (value.type !== "Word") return false;
  if (value.parts === undefined) return /^(?:0|[1-9]\d*)$/.test(value.text);
  return value.parts.length === 1 && value.parts[0]?.type === "ArithmeticExpansion";
}

export const initialState: State = { directories: [""], variables: new Map(), stack: [] };

export function staying(state: State): Flow {
  return { success: state, failure: state };
}

/** The state when either of two ways was taken. */
export function either(left: State, right: State): State {
  if (left === right) return left;
  return {
    directories: eitherDirectory(left.directories, right.directories),
    variables: eitherVariables(left.variables, right.variables),
    ...(left.stack !== undefined && left.stack === right.stack && { stack: left.stack }),
  };
}

const maxDirectories = 8;

/** All directories of both; too many to follow are an unknown one. */
function eitherDirectory(left: Directories, right: Directories): Directories {
  if (left === right) return left;
  const all = [...new Set([...left, ...right])];
  return all.length > maxDirectories ? ["unknown"] : all;
}

const unknown: Value = { type: "unknown" };

function eitherVariables(left: Variables, right: Variables): Variables {
  if (left === right) return left;
  const merged = new Map<string, Value>();
  for (const name of new Set([...left.keys(), ...right.keys()]))
    merged.set(name, eitherValue(left.get(name), right.get(name)));
  return merged;
}

function eitherValue(left: Value | undefined, right: Value | undefined): Value {
  if (left?.type === "text" && right?.type === "text" && left.text === right.text) return left;
  if (isNumber(left) && isNumber(right))
    return { type: "number", ...((mayBeUnset(left) || mayBeUnset(right)) && { mayBeUnset: true as const }) };
  return mayBePattern(left) || mayBePattern(right) ? { type: "unknown", pattern: true } : unknown;
}

export function mayBeUnset(value: Value | undefined): boolean {
  return value?.type === "number" && value.mayBeUnset === true;
}

/** Whether a value that the program has set would be expanded as a file pattern outside quotes. */
export function mayBePattern(value: Value | undefined): boolean {
  return (
    (value?.type === "text" && /[*?[]/.test(value.text)) ||
    (value?.type === "unknown" && value.pattern === true)
  );
}

export function isNumber(value: Value | undefined): boolean {
  return value?.type === "number" || (value?.type === "text" && /^(?:0|[1-9]\d{0,14})$/.test(value.text));
}

/** The state in an unknown directory. */
export function lost({ variables }: State): State {
  return { variables, directories: ["unknown"] };
}

/** The state after `pushd` went from one folder to another. */
export function pushed(from: State, to: State): State {
  const { directories, variables } = to;
  return from.stack === undefined ? to : { directories, variables, stack: [from.directories, ...from.stack] };
}

/** The state after `popd`, which fails where nothing was pushed. */
export function popped(state: State): State {
  const { stack, variables } = state;
  if (stack === undefined) return lost(state);
  const [directories, ...rest] = stack;
  return directories === undefined ? state : { variables, directories, stack: rest };
}

/**
 * Where `cd target` leads. Bash resolves `..` in the text of the path, and where nothing has that name it follows the
 * path as it was written, links and all.
 */
export function enter(state: State, target: Word | undefined): State {
  const path = target === undefined ? "~" : target.path;
  if (target !== undefined && (!target.pathKnown || target.loose || path === "-" || path === ""))
    return lost(state);
  if (path.length > maxFolderLength) return lost(state);
  const directories = [...new Set(state.directories.flatMap((directory) => join(directory, path)))];
  return { ...state, directories: directories.length > maxDirectories ? ["unknown"] : directories };
}

/** A longer path is none that a system takes. */
const maxFolderLength = 1_000;

function join(directory: string, path: string): readonly string[] {
  const isAbsolute = /^(?:\/|~(?:\/|$))/.test(path);
  if ((directory === "unknown" || directory.length > maxFolderLength) && !isAbsolute) return ["unknown"];
  // Only a directory that was reached as written has such a text.
  if (!isAbsolute && goesDownAgain(directory))
    return path.split("/").includes("..") ? ["unknown"] : [`${directory}/${path}`];
  const whole = isAbsolute || directory === "" ? path : `${directory}/${path}`;
  return goesDownAgain(whole) ? [normalize(whole), whole] : [normalize(whole)];
}

/** Whether a name follows a `..` that follows a name: the first may be a link, and the last need not be there. */
function goesDownAgain(path: string): boolean {
  const kinds = path
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .map((part) => (part === ".." ? "up" : "down"));
  const up = kinds.indexOf("up", kinds.indexOf("down") + 1);
  return kinds.includes("down") && up !== -1 && kinds.includes("down", up);
}

function normalize(path: string): string {
  const kept: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    const last = kept[kept.length - 1];
    if (part === ".." && last !== undefined && last !== ".." && last !== "~") kept.pop();
    else kept.push(part);
  }
  if (path.startsWith("/")) return `/${kept.filter((part) => part !== "..").join("/")}`;
  // A directory of this very name must not be taken for the sign.
  const text = kept.join("/");
  return text === "unknown" ? "./unknown" : text;
}
