import type { Assignment, Word as SyntaxWord } from "unbash";
import { isSteeringVariable } from "./shell-environment.ts";
import { visitWord } from "./shell-expansions.ts";
import { markOpaque, type Scene, type Walk } from "./shell-walk-state.ts";

/** Follows the expansions of an assignment and notes what the variable may hold. */
export function visitAssignment(walk: Walk, assignment: Assignment, scene: Scene): void {
  const { name, value, index } = assignment;
  if (index !== undefined) {
    visitWord(walk, index, scene);
    if (!/^\d+$/.test(index.text)) markOpaque(walk, "an array subscript is evaluated");
  }
  if (value.type === "ArrayValue") {
    // Bash 5.2 reads such a substitution twice and may lose quotes, and then takes the next lines for commands.
    if (scene.substituted === true) markOpaque(walk, "an array is set in a substitution");
    for (const element of value.elements) {
      visitWord(walk, element, scene);
      if (element.text.startsWith("[")) markOpaque(walk, "an array subscript is evaluated");
    }
    noteAssigned(walk, name, false);
    return;
  }
  visitWord(walk, value, scene);
  noteAssigned(walk, name, assignment.append !== true && isNumber(value));
}

export function noteAssigned(walk: Walk, name: string, numeric: boolean): void {
  if (!numeric) walk.texts.add(name);
  if (name === "HOME" || name === "PWD") markOpaque(walk, `it changes ${name}, which paths depend on`);
}

/** Why the shell may not go on by any rule after this assignment. */
export function steeringReason(names: readonly string[]): string | undefined {
  const name = names.find(isSteeringVariable);
  return name === undefined ? undefined : `the variable ${name} changes what commands do`;
}

function isNumber(word: SyntaxWord): boolean {
  if (/^(?:-?\d*|\$[?#]|\$\{#\w+\})$/.test(word.text)) return true;
  return word.parts?.length === 1 && word.parts[0]?.type === "ArithmeticExpansion";
}
