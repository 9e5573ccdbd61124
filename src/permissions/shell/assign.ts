import type { SyntaxNode } from "unbash";
import { isSteeringVariable } from "./private-name.ts";
import { isNumber, mayBePattern, mayBeUnset, type State, setVariable, type Value } from "./state.ts";
import { markOpaque, type Scene, type Walk } from "./walk.ts";
import type { Word } from "./word.ts";

/** Notes that a variable is set, in whatever way: every assignment goes through here. */
export function assign(walk: Walk, name: string, value: Value, { state }: Scene): State {
  if (!/^[A-Za-z_]\w*$/.test(name)) markOpaque(walk, "it is not clear which variable is set");
  else if (isSteeringVariable(name)) markOpaque(walk, `the variable ${name} changes what commands do`);
  return setVariable(state, name, value);
}

/** What a variable holds after it was set to a word. */
export function heldBy({ literal, value, numeric }: Word): Value {
  if (literal) return { type: "text", text: value };
  return numeric === true ? { type: "number" } : { type: "unknown" };
}

export interface AssignedNames {
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
    if (node.type === "Assignment")
      note(node.name, node.append !== true && isNumeric(node.value), holdsPattern(node.value));
    if (node.type === "For" || node.type === "Select") note(node.name.value, false);
    if (node.type === "ArithmeticCommand")
      for (const [, name = ""] of node.body.matchAll(/([A-Za-z_]\w*)/g)) note(name, true);
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

function holdsPattern(value: SyntaxNode): boolean {
  return "text" in value && /[*?[]/.test(value.text);
}

function isNumeric(value: SyntaxNode): boolean {
  if (value.type !== "Word") return false;
  if (value.parts === undefined) return /^(?:0|[1-9]\d*)$/.test(value.text);
  return value.parts.length === 1 && value.parts[0]?.type === "ArithmeticExpansion";
}
