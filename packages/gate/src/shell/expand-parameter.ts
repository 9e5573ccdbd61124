import type {
  ArithmeticExpansionPart,
  ParameterExpansionPart,
  ParameterOperation,
  SimpleExpansionPart,
} from "unbash";
import { matchesName } from "../covers-path.ts";
import type { Scene, Walk } from "./model.ts";
import { isShownVariable, privateName } from "./private-name.ts";
import { digitsOf, renderExpansion } from "./render-arithmetic.ts";
import { markOpaque, mayBePattern, mayBeUnset, visitNested } from "./walk.ts";

/** What an expansion contributes to a word. */
export type Piece =
  | { readonly type: "text"; readonly text: string; readonly source: string; readonly rendered: string }
  | { readonly type: "home"; readonly path: string; readonly source: string }
  | {
      readonly type: "unknown";
      readonly source: string;
      /** In shell syntax, without the double quotes around it. */
      readonly rendered: string;
      readonly numeric?: true;
      /** How it is written outside quotes where it may be nothing at all, which is then no argument. */
      readonly whenEmpty?: string;
      /** It may be several words even between double quotes. */
      readonly list?: true;
      /** The directory the command runs in. */
      readonly here?: true;
      /** The variable of the environment that it shows. */
      readonly environment?: string;
      /** It may hold a file pattern that the program itself has set. */
      readonly pattern?: true;
      /** It is the name of a temporary file that was made just now, or nothing. */
      readonly temporary?: true;
    };

/** Expands a parameter or an arithmetic expression. */
export function expandParameter(
  walk: Walk,
  part: SimpleExpansionPart | ParameterExpansionPart | ArithmeticExpansionPart,
  scene: Scene,
): Piece {
  if (part.type === "SimpleExpansion") return expandName(walk, part.text.slice(1), part.text, scene);
  if (part.type === "ArithmeticExpansion") {
    visitNested(walk, part, scene);
    const body = part.text.startsWith("$((") ? part.text.slice(3, -2) : undefined;
    const known = scene.dialect === "bash" ? scene.state : { ...scene.state, variables: new Map() };
    const rendered = body === undefined ? undefined : renderExpansion(body, known);
    if (rendered === undefined) markOpaque(walk, "an arithmetic expression evaluates text");
    return { type: "unknown", source: part.text, rendered: `$(( ${rendered ?? ""} ))`, numeric: true };
  }
  visitNested(walk, part, scene);
  const { parameter, prefix, index, operation, text: source } = part;
  const isPlain = prefix === undefined && index === undefined && operation === undefined;
  if (isPlain) return expandName(walk, parameter, source, scene);
  const reason = unclearReason(part);
  if (reason !== undefined) {
    markOpaque(walk, reason);
    return { type: "unknown", source, rendered: source };
  }
  const known =
    prefix === undefined && index === undefined ? scene.state.variables.get(parameter) : undefined;
  const value =
    known?.type === "text" && operation !== undefined ? applyOperation(known.text, operation) : undefined;
  // The expansion with the private name of its variable; the rest was seen to be plain.
  const { text } = part;
  const { state } = scene;
  const name = state.variables.has(parameter) ? privateName(parameter) : parameter;
  const rendered = text.replace(/^\$\{(#?)[A-Za-z_]\w*/, (_, prefix: string) => `\${${prefix}${name}`);
  if (value !== undefined) return { type: "text", text: value, source, rendered };
  const environment =
    scene.state.variables.has(parameter) || isShownVariable(parameter) ? undefined : parameter;
  return {
    type: "unknown",
    source,
    rendered,
    ...(prefix === "#" && { numeric: true as const }),
    ...((mayBePattern(known) || (operation?.type === "Default" && /[*?[]/.test(operation.operand.text))) && {
      pattern: true as const,
    }),
    ...(index !== undefined && /^[@*]$/.test(index.text) && { list: true as const }),
    ...(environment !== undefined && prefix !== "#" && { environment }),
  };
}

const numberNames = new Set(["?", "#", "$", "!"]);

function expandName(walk: Walk, name: string, source: string, { state, dialect }: Scene): Piece {
  if (numberNames.has(name)) return { type: "unknown", source, rendered: `$${name}`, numeric: true };
  if (!/^[A-Za-z_]\w*$/.test(name)) {
    const rendered = /^\d$/.test(name) || /^[@*]$/.test(name) ? `$${name}` : `\${${name}}`;
    return { type: "unknown", source, rendered, list: true };
  }
  const value = state.variables.get(name);
  if (value === undefined) {
    if (name === "HOME") return { type: "home", path: walk.surroundings.home, source };
    const rendered = `\${${name}}`;
    if (name === "PWD") return { type: "unknown", source, rendered, here: true };
    return { type: "unknown", source, rendered, ...(!isShownVariable(name) && { environment: name }) };
  }
  const rendered = `\${${privateName(name)}}`;
  if (value.type === "text") return { type: "text", text: value.text, source, rendered };
  // Only the digits are used, so that it is a number whatever was set; sh cannot do that.
  return value.type === "number" && dialect === "bash"
    ? {
        type: "unknown",
        source,
        rendered: digitsOf(name),
        numeric: true,
        ...(mayBeUnset(value) && { whenEmpty: rendered }),
      }
    : {
        type: "unknown",
        source,
        rendered,
        ...(mayBePattern(value) && { pattern: true as const }),
        ...(value.type === "unknown" && value.temporary === true && { temporary: true as const }),
      };
}

function unclearReason({ prefix, index, operation }: ParameterExpansionPart): string | undefined {
  if (prefix === "!") return "an indirect expansion names its variable when it runs";
  if (index !== undefined && !/^(?:[@*]|\d+)$/.test(index.text)) return "an array subscript is evaluated";
  switch (operation?.type) {
    case undefined:
      return undefined;
    case "Default":
      if (operation.operator.endsWith("=")) return "an expansion sets a variable";
      return plainOperand(operation.operand.text);
    case "Remove":
      return plainOperand(operation.operand.text);
    case "Replace":
      return plainOperand(operation.pattern.text) ?? plainOperand(operation.replacement.text);
    case "CaseModification":
      return operation.operand === undefined ? undefined : plainOperand(operation.operand.text);
    case "Slice":
      return [operation.offset, operation.length].every(
        (word) => word === undefined || /^ ?-?\d{1,9}$/.test(word.text),
      )
        ? undefined
        : "the place of a substring is evaluated";
    case "Transform":
      return /^[QULu]$/.test(operation.operand.text)
        ? undefined
        : "an expansion evaluates the text of a variable";
    default:
      return "an expansion is not understood";
  }
}

function plainOperand(text: string): string | undefined {
  return /^[\w.*?@%+:,/-]*$/.test(text) ? undefined : "an expansion holds more than plain text";
}

function applyOperation(value: string, operation: ParameterOperation): string | undefined {
  switch (operation.type) {
    case "Default": {
      const isSet = operation.operator.startsWith(":") ? value !== "" : true;
      const fallback = operation.operator.endsWith("-") ? operation.operand.text : undefined;
      if (operation.operator.endsWith("-") || operation.operator.endsWith("?"))
        return isSet ? value : fallback;
      return isSet ? operation.operand.text : "";
    }
    case "Remove":
      return removePattern(value, operation.operator, operation.operand.text);
    default:
      return undefined;
  }
}

/** `${x#…}` and `${x%…}` with the shortest or longest match; `*` and `?` are the only signs. */
function removePattern(
  value: string,
  operator: "#" | "##" | "%" | "%%",
  pattern: string,
): string | undefined {
  // Every part of the value is compared with the pattern.
  if (value.length > 200 || pattern.length > 100) return undefined;
  const fits = (text: string): boolean => matchesName(pattern, text);
  const lengths = Array.from({ length: value.length + 1 }, (_, at) => at);
  if (operator.length === 2) lengths.reverse();
  const fromStart = operator.startsWith("#");
  const found = lengths.find((length) =>
    fits(fromStart ? value.slice(0, length) : value.slice(value.length - length)),
  );
  if (found === undefined) return value;
  return fromStart ? value.slice(found) : value.slice(0, value.length - found);
}
