import type { Word as SyntaxWord, TestExpression } from "unbash";
import { expandSingle } from "./expand-word.ts";
import type { Scene, Walk } from "./model.ts";
import { markOpaque } from "./walk.ts";
import { quoteWord } from "./word.ts";

const unary = /^-[abcdefghknoprstuwxzGLNOS]$/;
const textComparison = new Set(["=", "==", "!="]);
const orderComparison = new Set(["<", ">", "-nt", "-ot", "-ef"]);
const numberComparison = /^-(?:eq|ne|lt|le|gt|ge)$/;

/** Renders `[[ … ]]`; operators that evaluate text are opaque. */
export function walkTest(walk: Walk, expression: TestExpression, scene: Scene): string {
  return `[[ ${render(walk, expression, scene)} ]]`;
}

function render(walk: Walk, node: TestExpression, scene: Scene): string {
  switch (node.type) {
    case "TestUnary":
      if (node.operator === "-v" || node.operator === "-R")
        markOpaque(walk, "the test evaluates a variable's name");
      else if (!unary.test(node.operator)) markOpaque(walk, "a test is not understood");
      return `${node.operator} ${operand(walk, node.operand, scene)}`;
    case "TestBinary":
      return renderBinary(walk, node, scene);
    case "TestLogical":
      return node.operands.map((part) => render(walk, part, scene)).join(` ${node.operator} `);
    case "TestNot":
      return `${"! ".repeat(node.negations.length)}${render(walk, node.operand, scene)}`;
    case "TestGroup":
      return `( ${render(walk, node.expression, scene)} )`;
    default:
      markOpaque(walk, "a test is not understood");
      return "";
  }
}

function renderBinary(
  walk: Walk,
  { operator, left, right }: Extract<TestExpression, { type: "TestBinary" }>,
  scene: Scene,
): string {
  if (numberComparison.test(operator))
    return `${number(walk, left, scene)} ${operator} ${number(walk, right, scene)}`;
  if (!textComparison.has(operator) && !orderComparison.has(operator))
    markOpaque(walk, "a test is not understood");
  const first = operand(walk, left, scene);
  const isPattern = textComparison.has(operator) && /^[\w./*?@%+:,-]+$/.test(right.text);
  if (isPattern) return `${first} ${operator} ${right.text}`;
  if (textComparison.has(operator) && /[*?[\]()|]/.test(right.text.replace(/\\[\s\S]|'[^']*'|"[^"]*"/g, "")))
    markOpaque(walk, "a pattern is not understood");
  return `${first} ${operator} ${operand(walk, right, scene)}`;
}

function operand(walk: Walk, word: SyntaxWord, scene: Scene): string {
  const expanded = expandSingle(walk, word, scene);
  return expanded.literal ? quoteOperand(expanded.value) : expanded.rendered;
}

/** Bash takes `-n` without quotes for an operator, wherever it is. */
function quoteOperand(text: string): string {
  return text.startsWith("-") ? `'${text.replaceAll("'", "'\\''")}'` : quoteWord(text);
}

/** Bash evaluates the operands of a comparison of numbers as arithmetic. */
function number(walk: Walk, word: SyntaxWord, scene: Scene): string {
  const { literal, text, numeric, rendered } = expandSingle(walk, word, scene);
  const isCertain = numeric === true || (literal && /^-?\d+$/.test(text));
  if (!isCertain) markOpaque(walk, "a comparison of numbers evaluates text");
  return rendered;
}
