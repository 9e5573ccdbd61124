import { kindOf, quote } from "./json-record.ts";
import { nearestName } from "./nearest-name.ts";
import { RetinueError } from "./retinue-error.ts";

/** What is wrong with a value, as the rest of a sentence about it; undefined where it fits. */
export type Check = (value: unknown) => string | undefined;

/** An object with keys of its own: no list, and no Date, Promise or Map, whose keys would silently be none. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && tagOf(value) === "Object";
}

function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

/** A value as a sentence about it names it. */
export function nameValue(value: unknown, limit = 60): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return quote(value, limit);
  const tag = tagOf(value);
  return tag === "Object" ? kindOf(value) : `a ${tag}`;
}

const text: Check = (value) => (typeof value === "string" ? undefined : "must be a string");
const filled: Check = (value) =>
  typeof value === "string" && value.trim() !== "" ? undefined : "must be a non-empty string";
const flag: Check = (value) => (typeof value === "boolean" ? undefined : "must be true or false");
const call: Check = (value) => (typeof value === "function" ? undefined : "must be a function");
const thing: Check = (value) => (isPlainObject(value) ? undefined : "must be an object");
/** By name, so no list. */
const record: Check = (value) => (isPlainObject(value) ? undefined : "must be an object keyed by name");
const variables: Check = (value) =>
  isPlainObject(value) &&
  Object.values(value).every((entry) => entry === undefined || typeof entry === "string")
    ? undefined
    : "must be an object of strings";
const list: Check = (value) => (Array.isArray(value) ? undefined : "must be a list");
const texts: Check = (value) =>
  Array.isArray(value) && value.every((entry) => typeof entry === "string")
    ? undefined
    : "must be a list of strings";
// Whether it is in range is decided where it is planned, together with numbers of files.
const number: Check = (value) => (typeof value === "number" ? undefined : "must be a number");
const count: Check = (value) =>
  Number.isSafeInteger(value) && Number(value) > 0 ? undefined : "must be a whole number from 1";
/** A number, also a large one; `Infinity` means all. */
const amount: Check = (value) =>
  typeof value === "number" && value >= 0 ? undefined : "must be a number from 0";
const signal: Check = (value) => (value instanceof AbortSignal ? undefined : "must be an AbortSignal");
const anything: Check = () => undefined;

/** Anything that is not missing; null is a value. */
const given: Check = (value) => (value === undefined ? "must be there" : undefined);

/** One of several words, with the closest one where none fits. */
function oneOf(words: readonly string[]): Check {
  return (value) => {
    if (typeof value === "string" && words.includes(value)) return undefined;
    const nearest = typeof value === "string" ? nearestName(value, words) : undefined;
    const hint = nearest === undefined ? "" : ` (did you mean ${JSON.stringify(nearest)}?)`;
    return `must be one of ${words.join(", ")}${hint}`;
  };
}

/** An object with these functions, and with others that are functions if they are there. */
function methods(needed: readonly string[], others: readonly string[] = []): Check {
  return (value) => {
    if (typeof value !== "object" || value === null) return "must be an object";
    const missing = needed.find((name) => typeof Reflect.get(value, name) !== "function");
    if (missing !== undefined) return `must have a function ${missing}()`;
    const wrong = others.find((name) => !["undefined", "function"].includes(typeof Reflect.get(value, name)));
    return wrong === undefined ? undefined : `must have a function ${wrong}(), or nothing of this name`;
  };
}

/** The first that fits, or the sentence that describes all of them. */
function either(sentence: string, ...those: readonly Check[]): Check {
  return (value) => (those.some((check) => check(value) === undefined) ? undefined : sentence);
}

/** A list whose entries all fit. */
function listOf(check: Check, entries: string): Check {
  return (value) => {
    if (!Array.isArray(value)) return `must be a list of ${entries}`;
    const wrong = value.findIndex((entry) => check(entry) !== undefined);
    if (wrong === -1) return undefined;
    return `has the entry ${nameValue(value[wrong], 30)}, which ${check(value[wrong])}`;
  };
}

/** An object whose fields fit: those in `needs` must be there, and what is not named is left to others. */
function shape(fields: Readonly<Record<string, Check>>, needs: readonly string[] = []): Check {
  return (value) => {
    if (!isPlainObject(value))
      return needs.length === 0 ? "must be an object" : `must be an object with ${needs.join(", ")}`;
    for (const [key, check] of Object.entries(fields)) {
      const entry = value[key];
      if (entry === undefined && !needs.includes(key)) continue;
      const complaint = check(entry);
      if (complaint === undefined) continue;
      return complaint.startsWith("has ")
        ? `has ${key}, which ${complaint}`
        : `has ${key}, which ${complaint}, but is ${nameValue(entry, 40)}`;
    }
    return undefined;
  };
}

/** The checks that tables of arguments are made of. */
export const checks = {
  text,
  filled,
  flag,
  call,
  thing,
  record,
  variables,
  list,
  texts,
  number,
  count,
  amount,
  signal,
  anything,
  given,
  oneOf,
  methods,
  either,
  listOf,
  shape,
};

export function invalid(message: string): RetinueError {
  return new RetinueError("invalid-option", message);
}

/** Refuses an argument that does not fit; `what` names it: "The plan of session.runPlan()". */
export function checkArgument(what: string, check: Check, value: unknown): void {
  const complaint = check(value);
  if (complaint === undefined) return;
  // A sentence about one entry of a list or record names that entry itself.
  throw invalid(`${what} ${complaint}${complaint.startsWith("has ") ? "" : `, but is ${nameValue(value)}`}.`);
}

/** Refuses options of the wrong kind, and with `unknown` those that are not in the table. */
export function checkTable(
  taker: string,
  table: Readonly<Record<string, Check | undefined>>,
  options: unknown,
  unknown: (key: string) => RetinueError | undefined = (key) => unknownOption(taker, Object.keys(table), key),
): void {
  const name = `${taker}()`;
  if (!isPlainObject(options))
    throw invalid(`The options of ${name} must be an object, but are ${nameValue(options)}.`);
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const check = Object.hasOwn(table, key) ? table[key] : undefined;
    if (check !== undefined) checkArgument(`The option ${key} of ${name}`, check, value);
    else {
      const error = unknown(key);
      if (error !== undefined) throw error;
    }
  }
}

export function unknownOption(taker: string, known: readonly string[], key: string): RetinueError {
  const message = `${JSON.stringify(key)} is not an option of ${taker}().`;
  const nearest = nearestName(key, known);
  return invalid(
    nearest === undefined
      ? `${message} Its options are ${known.join(", ")}.`
      : `${message} Did you mean ${JSON.stringify(nearest)}?`,
  );
}

/** One argument of a function: a value that fits, or an object with these options. */
export type Argument =
  | { readonly check: Check; readonly isOptional?: boolean }
  | {
      readonly options: Readonly<Record<string, Check>>;
      /** Those that must be there; with any, the object must be. */
      readonly needs?: readonly string[];
      /** Parts of the library pass objects with more in them. */
      readonly takesOthers?: true;
    };

const ordinals = ["first", "second", "third", "fourth"] as const;

/** Refuses the first argument that does not fit, in one sentence; `name` is that of the function. */
export function checkArguments(name: string, takes: readonly Argument[], args: readonly unknown[]): void {
  takes.forEach((argument, index) => {
    const one = args[index];
    const which = `The ${ordinals[index]} argument of ${name}()`;
    if (!("options" in argument)) {
      if (one !== undefined || argument.isOptional !== true) checkArgument(which, argument.check, one);
      return;
    }
    const { options, needs = [], takesOthers } = argument;
    if (one !== undefined) checkTable(name, options, one, takesOthers && (() => undefined));
    const missing = needs.find((key) => Object(one)[key] === undefined);
    if (missing !== undefined) throw invalid(`${which} must be an object with ${missing}.`);
  });
}
