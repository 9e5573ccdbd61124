import { isNumber, type State } from "./shell-state.ts";
import { isSafeVariable, isSteeringVariable, privateName } from "./shell-variables.ts";

const token =
  /\s+|\$?\{?[A-Za-z_]\w*\}?|\d+(?![\w#])|\+\+|--|[-+*/%&|^]=|<<|>>|[<>=!]=|&&|\|\||[-+*/%<>=!&|^~?:,()]/y;

export interface RenderedArithmetic {
  readonly text: string;
  /** Variables that it sets; they are numbers afterwards. */
  readonly assigned: readonly string[];
}

/**
 * Renders an arithmetic expression in which every variable is known to be a number; bash would evaluate any other
 * text, commands in it too. Undefined where that is not certain.
 */
export function renderArithmetic(
  source: string,
  state: State,
  mayAssign = false,
): RenderedArithmetic | undefined {
  const assigned: string[] = [];
  let text = "";
  for (let at = 0; at < source.length; ) {
    token.lastIndex = at;
    const found = token.exec(source)?.[0];
    if (found === undefined) return undefined;
    at += found.length;
    const name = /^(?:\$\{(\w+)\}|\$?(\w+))$/.exec(found);
    const variable = name?.[1] ?? name?.[2];
    if (variable === undefined && /[A-Za-z_${}]/.test(found)) return undefined;
    if (variable === undefined || /^\d/.test(variable)) {
      text += found;
      continue;
    }
    const assigns = isAssignedHere(source, at, found.length);
    if (
      assigns &&
      (!mayAssign || isSteeringVariable(variable) || isSafeVariable(variable) || found.startsWith("$"))
    )
      return undefined;
    if (!assigns && !assigned.includes(variable) && !isNumber(state.variables.get(variable)))
      return undefined;
    if (assigns) {
      const isFresh = /^\s*=(?!=)/.test(source.slice(at));
      if (!isFresh && !assigned.includes(variable) && !isNumber(state.variables.get(variable)))
        return undefined;
      assigned.push(variable);
    }
    text += privateName(variable);
  }
  return { text, assigned };
}

/** Whether the name that ends here is set: followed by an assignment, or beside `++` or `--`. */
function isAssignedHere(source: string, end: number, length: number): boolean {
  const before = source.slice(0, end - length);
  return (
    /^\s*(?:=(?!=)|[-+*/%&|^]=|<<=|>>=|\+\+|--)/.test(source.slice(end)) || /(?:\+\+|--)\s*$/.test(before)
  );
}
