import type { Word as SyntaxWord, TestExpression } from "unbash";
import { visitWord } from "./shell-expansions.ts";
import { markOpaque, type Scene, type Walk } from "./shell-walk-state.ts";

const comparing = /^-(?:eq|ne|lt|le|gt|ge)$/;

/** Follows `[[ … ]]`: numbers are evaluated, and `-v` evaluates a subscript. */
export function visitTest(walk: Walk, node: TestExpression, scene: Scene): void {
  switch (node.type) {
    case "TestUnary":
      if (node.operator === "-v" || node.operator === "-R")
        markOpaque(walk, "the test evaluates a variable's name");
      visitWord(walk, node.operand, scene);
      return;
    case "TestBinary":
      for (const word of [node.left, node.right]) {
        visitWord(walk, word, scene);
        if (comparing.test(node.operator)) noteEvaluated(walk, word);
      }
      return;
    case "TestLogical":
      for (const operand of node.operands) visitTest(walk, operand, scene);
      return;
    case "TestNot":
      visitTest(walk, node.operand, scene);
      return;
    case "TestGroup":
      visitTest(walk, node.expression, scene);
      return;
    default:
      markOpaque(walk, "a test is not understood");
  }
}

function noteEvaluated(walk: Walk, word: SyntaxWord): void {
  const [, name] = /^"?\$\{?(\w+)\}?"?$/.exec(word.text) ?? [];
  if (name !== undefined && /^\D/.test(name)) walk.evaluated.add(name);
  else if (!/^"?(?:-?\d+|\$[?#]|\$\{#\w+\})"?$/.test(word.text))
    markOpaque(walk, "a comparison of numbers evaluates text");
}
