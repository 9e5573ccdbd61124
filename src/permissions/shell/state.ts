import type { Word } from "./word.ts";

/** The directories a command may run in: "" is that of the call. */
export type Directories = readonly string[];

/** What a variable holds that the program itself has set. */
export type Value =
  | { readonly type: "text"; readonly text: string }
  | {
      readonly type: "number";
      /** It may hold nothing yet. */
      readonly mayBeUnset?: true;
    }
  | {
      readonly type: "unknown";
      /** It may hold a file pattern that the program itself has set. */
      readonly pattern?: true;
    };

export type Variables = ReadonlyMap<string, Value>;

/** What the shell is like at one point of the program. */
export interface State {
  readonly directories: Directories;
  readonly variables: Variables;
}

/** The state after a command: when it succeeded, and when it failed. */
export interface Flow {
  readonly success: State;
  readonly failure: State;
}

export const initialState: State = { directories: [""], variables: new Map() };

export function staying(state: State): Flow {
  return { success: state, failure: state };
}

/** The state when either of two ways was taken. */
export function either(left: State, right: State): State {
  if (left === right) return left;
  return {
    directories: eitherDirectory(left.directories, right.directories),
    variables: eitherVariables(left.variables, right.variables),
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

export function setVariable(state: State, name: string, value: Value): State {
  return { ...state, variables: new Map(state.variables).set(name, value) };
}

/** The state in an unknown directory. */
export function lost(state: State): State {
  return { ...state, directories: ["unknown"] };
}

/**
 * Where `cd target` leads. Bash resolves `..` in the text of the path, and where nothing has that name it follows the
 * path as it was written, links and all.
 */
export function enter(state: State, target: Word | undefined): State {
  const path = target === undefined ? "~" : target.path;
  if (target !== undefined && (!target.pathKnown || target.loose || path === "-" || path === ""))
    return lost(state);
  const directories = [...new Set(state.directories.flatMap((directory) => join(directory, path)))];
  return { ...state, directories: directories.length > maxDirectories ? ["unknown"] : directories };
}

function join(directory: string, path: string): readonly string[] {
  const isAbsolute = /^(?:\/|~(?:\/|$))/.test(path);
  if (directory === "unknown" && !isAbsolute) return ["unknown"];
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
