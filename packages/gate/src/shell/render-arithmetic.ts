import type { ArithmeticExpression } from "unbash";
import type { State } from "./model.ts";
import { isSafeVariable, isSteeringVariable, privateName } from "./private-name.ts";
import { isNumber } from "./walk.ts";

const token =
  /\s+|\$?\{?[A-Za-z_]\w*\}?|\d+(?![\w#])|\+\+|--|<<=|>>=|[-+*/%&|^]=|\*\*|<<|>>|[<>=!]=|&&|\|\||[-+*/%<>=!&|^~?:,()]/y;
const assigning = /^(?:=|[-+*/%&|^]=|<<=|>>=)$/;

/** The digits of a variable: bash evaluates any other text that is in arithmetic, commands in it too. */
export function digitsOf(name: string): string {
  return `\${${privateName(name)}//[!0-9-]/}`;
}

/**
 * Renders an arithmetic expansion in which every variable is known to be a number and none is set; only the digits of
 * a variable are evaluated, whatever it holds. Undefined where that is not certain.
 */
export function renderExpansion(source: string, state: State): string | undefined {
  const tokens = readTokens(source, state);
  if (tokens === undefined || tokens.some(({ sets }) => sets)) return undefined;
  // A variable that is not set, or holds nothing, counts as zero.
  return tokens.map(({ text, name }) => (name === undefined ? text : `(${digitsOf(name)}+0)`)).join(" ");
}

export interface RenderedArithmetic {
  readonly text: string;
  /** Variables that it may set; they hold numbers, or nothing, afterwards. */
  readonly assigned: readonly string[];
}

/** Renders `((…))`: its variables are reduced to their digits before it evaluates them. */
export function renderArithmetic(source: string, state: State): RenderedArithmetic | undefined {
  const tokens = readTokens(source, state);
  if (tokens === undefined) return undefined;
  const { expression, names, assigned } = describe(tokens);
  return {
    text:
      names.length === 0
        ? `((${expression}))`
        : `{ ${names.map((name) => `${privateName(name)}=${digitsOf(name)}`).join("\n")}\n((${expression}))\n}`,
    assigned,
  };
}

interface Described {
  readonly expression: string;
  readonly names: readonly string[];
  readonly assigned: readonly string[];
}

function describe(tokens: readonly Token[]): Described {
  return {
    expression: tokens.map(({ text, name }) => (name === undefined ? text : privateName(name))).join(" "),
    names: [...new Set(tokens.flatMap(({ name }) => name ?? []))],
    assigned: [...new Set(tokens.flatMap(({ name, sets }) => (sets && name !== undefined ? [name] : [])))],
  };
}

/** One of the three expressions of `for ((…;…;…))`, which bash evaluates again and again; what it uses must stay numbers. */
export function renderPart(source: string, state: State): Described | undefined {
  const tokens = readTokens(source, state);
  return tokens === undefined ? undefined : describe(tokens);
}

/** The text of an expression; undefined where it holds a command. */
export function arithmeticText(node: ArithmeticExpression): string | undefined {
  const inner = (part: ArithmeticExpression): string | undefined => {
    const text = arithmeticText(part);
    const isWord = part.type === "ArithmeticWord" || part.type === "ArithmeticGroup";
    return text === undefined || isWord ? text : `(${text})`;
  };
  const parts = ((): readonly (string | undefined)[] => {
    switch (node.type) {
      case "ArithmeticWord":
        return [node.value];
      case "ArithmeticGroup":
        return ["(", arithmeticText(node.expression), ")"];
      case "ArithmeticUnary":
        return node.prefix ? [node.operator, inner(node.operand)] : [inner(node.operand), node.operator];
      case "ArithmeticBinary":
        return [inner(node.left), node.operator, inner(node.right)];
      case "ArithmeticTernary":
        return [inner(node.test), "?", inner(node.consequent), ":", inner(node.alternate)];
      default:
        return [undefined];
    }
  })();
  return parts.includes(undefined) ? undefined : parts.join(" ");
}

interface Token {
  readonly text: string;
  readonly name?: string;
  readonly sets: boolean;
}

/** The tokens of an expression; undefined where one is not understood, or means text that is not a number. */
function readTokens(source: string, state: State): readonly Token[] | undefined {
  const texts: string[] = [];
  for (let at = 0; at < source.length; ) {
    token.lastIndex = at;
    const found = token.exec(source)?.[0];
    if (found === undefined) return undefined;
    at += found.length;
    if (!/^\s/.test(found)) texts.push(found);
  }
  const set = new Set<string>();
  const tokens: Token[] = [];
  for (const [at, text] of texts.entries()) {
    if (!/[\w${}]/.test(text)) {
      tokens.push({ text, sets: false });
      continue;
    }
    // Two operands beside each other would be one name for bash.
    if (/[\w}]$/.test(texts[at - 1] ?? "")) return undefined;
    const name = /^(?:\$\{(\w+)\}|\$?(\w+))$/.exec(text);
    const variable = name?.[1] ?? name?.[2];
    if (variable === undefined) return undefined;
    if (/^\d/.test(variable)) {
      tokens.push({ text, sets: false });
      continue;
    }
    const next = texts[at + 1] ?? "";
    const isStep = /^(?:\+\+|--)$/.test(next) || /^(?:\+\+|--)$/.test(texts[at - 1] ?? "");
    const sets = assigning.test(next) || isStep;
    if (sets && (isSteeringVariable(variable) || isSafeVariable(variable) || text.startsWith("$")))
      return undefined;
    const isKnown = set.has(variable) || isNumber(state.variables.get(variable));
    if (next !== "=" && !isKnown) return undefined;
    if (sets) set.add(variable);
    tokens.push({ text, name: variable, sets });
  }
  return tokens;
}
