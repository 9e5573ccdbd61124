import { isFields } from "./security-case.ts";

/** What is wrong with a value, each as one sentence that begins with its path. */
export type Shape = (value: unknown, path: string) => readonly string[];

export const anything: Shape = () => [];
export const text: Shape = kind("a text", (value) => typeof value === "string");
export const flag: Shape = kind("true or false", (value) => typeof value === "boolean");
export const number: Shape = kind("a number", (value) => typeof value === "number");
export const record: Shape = kind("an object", isFields);
export const textOrNull: Shape = kind(
  "a text or null",
  (value) => value === null || typeof value === "string",
);

export function listOf(shape: Shape): Shape {
  return (value, path) =>
    Array.isArray(value)
      ? value.flatMap((entry, at) => shape(entry, `${path}[${at}]`))
      : [`${path} must be a list`];
}

export const texts = listOf(text);

/** One value, or a list of such. */
export function oneOrMore(shape: Shape): Shape {
  return (value, path) => (Array.isArray(value) ? listOf(shape) : shape)(value, path);
}

export function recordOf(shape: Shape): Shape {
  return (value, path) =>
    isFields(value)
      ? Object.entries(value).flatMap(([key, entry]) => shape(entry, `${path}.${key}`))
      : [`${path} must be an object`];
}

export function oneOf(...values: readonly unknown[]): Shape {
  return (value, path) =>
    values.includes(value)
      ? []
      : [`${path} is ${JSON.stringify(value)}, a value that this adapter does not recognize`];
}

export function either(...shapes: readonly Shape[]): Shape {
  return (value, path) => {
    const complaints = shapes.map((shape) => shape(value, path));
    return complaints.find((found) => found.length === 0) ?? complaints[0] ?? [];
  };
}

/** An object with these fields and no others; each may be absent. */
export function fields(known: Readonly<Record<string, Shape>>): Shape {
  return (value, path) => {
    if (!isFields(value)) return [`${path} must be an object`];
    return Object.entries(value).flatMap(([key, entry]) => {
      const shape = Object.hasOwn(known, key) ? known[key] : undefined;
      const at = path === "" ? key : `${path}.${key}`;
      return shape === undefined
        ? [`${at} is a field that this adapter does not recognize`]
        : shape(entry, at);
    });
  };
}

function kind(expected: string, is: (value: unknown) => boolean): Shape {
  return (value, path) => (is(value) ? [] : [`${path} must be ${expected}`]);
}
