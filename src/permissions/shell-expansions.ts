import type { ParameterExpansionPart, SyntaxNode, Word as SyntaxWord } from "unbash";
import { markOpaque, type Scene, type Walk } from "./shell-walk-state.ts";

/** Follows what is expanded in a word: commands are walked, and what could run hidden text is opaque. */
export function visitWord(walk: Walk, word: SyntaxWord | undefined, scene: Scene): void {
  if (word === undefined) return;
  for (const part of word.parts ?? [{ type: "Literal" as const, text: word.text }]) {
    if (part.type !== "Literal") visitPart(walk, part, scene);
    else if (strangeBlank.test(part.text))
      markOpaque(walk, "it has blanks that bash does not take for blanks");
  }
}

export function visitParts(walk: Walk, node: SyntaxNode, scene: Scene): void {
  walk.grammar.forEachChild(node, (child) => visitPart(walk, child, scene));
}

const strangeBlank = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/;
const calm = new Set<SyntaxNode["type"]>([
  "Word",
  "SingleQuoted",
  "DoubleQuoted",
  "SimpleExpansion",
  "Glob",
  "ExtendedGlob",
  "BraceExpansion",
  "Default",
  "Remove",
  "Replace",
  "CaseModification",
  "Transform",
  "Slice",
]);
const bashOnly = new Set<SyntaxNode["type"]>([
  "AnsiCQuoted",
  "LocaleString",
  "ProcessSubstitution",
  "ExtendedGlob",
]);

function visitPart(walk: Walk, part: SyntaxNode, scene: Scene): void {
  if (scene.dialect === "sh" && bashOnly.has(part.type))
    markOpaque(walk, "sh may read this syntax of bash differently");
  switch (part.type) {
    case "Literal":
    case "AnsiCQuoted":
    case "SingleQuoted":
      return;
    case "CommandExpansion":
    case "ProcessSubstitution":
      if (part.text.startsWith("$((")) markOpaque(walk, "arithmetic and a substitution look alike");
      if (part.script === undefined) markOpaque(walk, "a substitution cannot be read");
      else walk.walkScript(walk, part.script, { ...scene, substituted: true });
      return;
    case "ParameterExpansion":
      checkParameter(walk, part);
      break;
    case "ArithmeticExpansion":
      if (part.expression === undefined && /\S/.test(part.text.slice(2).replace(/[()\]]+$/, "")))
        markOpaque(walk, "an arithmetic expression cannot be read");
      else if (part.expression !== undefined) visitArithmetic(walk, part.expression, scene);
      return;
    case "LocaleString":
      break;
    default:
      if (!calm.has(part.type)) markOpaque(walk, `${part.type} is not understood here`);
  }
  visitParts(walk, part, scene);
}

function checkParameter(walk: Walk, part: ParameterExpansionPart): void {
  const { prefix, index, operation } = part;
  if (prefix === "!") markOpaque(walk, "an indirect expansion names its variable when it runs");
  if (index !== undefined && !/^(?:[@*]|\d+)$/.test(index.text))
    markOpaque(walk, "an array subscript is evaluated");
  if (operation === undefined) return;
  if (operation.type === "Unknown") markOpaque(walk, "an expansion is not understood");
  if (operation.type === "Default" && operation.operator.endsWith("="))
    markOpaque(walk, "an expansion sets a variable");
  if (operation.type === "Transform" && !/^[QULuEKkAa]$/.test(operation.operand.text))
    markOpaque(walk, "an expansion evaluates the text of a variable");
  if (operation.type === "Slice") {
    const numeric = [operation.offset, operation.length].every(
      (word) => word === undefined || /^\s*-?\d+\s*$/.test(word.text),
    );
    if (!numeric) markOpaque(walk, "the place of a substring is evaluated");
  }
}

const plainOperand = /^\s*(?:\d[\w#]*|[A-Za-z_]\w*|\$[A-Za-z_]\w*|\$\{#?[A-Za-z_]\w*\}|\$[?#])?\s*$/;

/** Bash evaluates the values of variables in arithmetic again, subscripts and commands in them too. */
export function visitArithmetic(walk: Walk, node: SyntaxNode, scene: Scene): void {
  switch (node.type) {
    case "ArithmeticWord": {
      if (node.value.includes("[")) markOpaque(walk, "an array subscript is evaluated");
      else if (!plainOperand.test(node.value)) markOpaque(walk, "an arithmetic expression holds text");
      for (const [name] of node.value.matchAll(/[A-Za-z_]\w*/g)) walk.evaluated.add(name);
      for (const part of node.parts ?? []) {
        visitPart(walk, part, scene);
      }
      return;
    }
    case "ArithmeticCommandExpansion":
      markOpaque(walk, "arithmetic evaluates what a command prints");
      if (node.script !== undefined) walk.walkScript(walk, node.script, scene);
      return;
    default:
      walk.grammar.forEachChild(node, (child) => visitArithmetic(walk, child, scene));
  }
}
