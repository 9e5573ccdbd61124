import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";

/**
 * Types for the input of the tools of this product: how it is checked, and the JSON Schema that a model sees, from the same
 * words. They are named as in zod, which takes a tenth of a start to load and to make the same types and schemas.
 */
interface InputFlaw {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

type InputReading<Value> =
  | { readonly success: true; readonly data: Value }
  | { readonly success: false; readonly error: { readonly issues: readonly InputFlaw[] } };

/** What checks the input of a call: one of these types, or a type of zod that a program has brought. */
export interface InputCheck<Value = unknown> {
  safeParse(value: unknown): InputReading<Value>;
}

export type Infer<Type extends InputCheck> = Type extends InputType<infer Value> ? Value : never;

interface Flaw extends InputFlaw {
  /** The value is of another type, so that no further check of it, or of what it is a part of, can run. */
  readonly isFinal: boolean;
}

/** Gives back the value in the form that the tool gets; what it adds to `flaws` makes it worthless. */
type Read = (value: unknown, path: readonly PropertyKey[], flaws: Flaw[]) => unknown;

/** A check, or a change, of a value of the right type. */
type Step = (value: never) => { readonly flaw?: string | undefined } | { readonly changed: unknown };

interface Parts {
  readonly schema: JsonRecord;
  readonly read: Read;
  readonly steps?: readonly Step[];
  /** Whether an object may be without it. */
  readonly mayBeAbsent?: boolean;
}

export class InputType<Value> implements InputCheck<Value> {
  protected readonly parts: Parts;

  constructor(parts: Parts) {
    this.parts = parts;
  }

  get jsonSchema(): JsonRecord {
    return this.parts.schema;
  }

  get mayBeAbsent(): boolean {
    return this.parts.mayBeAbsent === true;
  }

  safeParse(value: unknown): InputReading<Value> {
    const flaws: Flaw[] = [];
    const data = this.readAt(value, [], flaws);
    if (flaws.length > 0)
      return { success: false, error: { issues: flaws.map(({ path, message }) => ({ path, message })) } };
    // Without flaws it has been read as this type.
    return { success: true, data: data as Value };
  }

  readAt(value: unknown, path: readonly PropertyKey[], flaws: Flaw[]): unknown {
    const before = flaws.length;
    let current = this.parts.read(value, path, flaws);
    if (flaws.slice(before).some(({ isFinal }) => isFinal)) return current;
    for (const step of this.parts.steps ?? []) {
      // What was read without a final flaw is of the type that the step was written for.
      const outcome = step(current as never);
      if ("changed" in outcome) current = outcome.changed;
      else if (outcome.flaw !== undefined) flaws.push({ path, message: outcome.flaw, isFinal: false });
    }
    return current;
  }

  describe(description: string): this {
    return this.with({ schema: { ...this.parts.schema, description } });
  }

  refine(holds: (value: Value) => boolean, { message }: { readonly message: string }): this {
    return this.check((value: Value) => ({ flaw: holds(value) ? undefined : message }));
  }

  optional(): InputType<Value | undefined> {
    return new InputType({
      schema: this.parts.schema,
      mayBeAbsent: true,
      read: (value, path, flaws) => (value === undefined ? undefined : this.readAt(value, path, flaws)),
    });
  }

  default(otherwise: Value): InputType<Value> {
    return new InputType({
      schema: { ...this.parts.schema, default: otherwise },
      mayBeAbsent: true,
      read: (value, path, flaws) => (value === undefined ? otherwise : this.readAt(value, path, flaws)),
    });
  }

  protected check(step: (value: Value) => ReturnType<Step>, schema: JsonRecord = {}): this {
    const { schema: own, steps = [] } = this.parts;
    return this.with({ schema: { ...own, ...schema }, steps: [...steps, step] });
  }

  protected with(changed: Partial<Parts>): this {
    const Own = this.constructor as new (parts: Parts) => this;
    return new Own({ ...this.parts, ...changed });
  }
}

class TextType extends InputType<string> {
  min(length: number): this {
    return this.check(
      (text) => ({
        flaw: text.length < length ? tooSmall(`string to have >=${length} characters`) : undefined,
      }),
      { minLength: length },
    );
  }

  max(length: number): this {
    return this.check(
      (text) => ({
        flaw: text.length > length ? tooBig(`string to have <=${length} characters`) : undefined,
      }),
      { maxLength: length },
    );
  }

  regex(pattern: RegExp): this {
    return this.check(
      (text) => ({ flaw: pattern.test(text) ? undefined : `Invalid string: must match pattern ${pattern}` }),
      { pattern: pattern.source },
    );
  }

  trim(): this {
    return this.check((text) => ({ changed: text.trim() }));
  }
}

class NumberType extends InputType<number> {
  int(): this {
    const { schema, read } = this.parts;
    return this.with({
      schema: { ...schema, type: "integer" },
      read(value, path, flaws) {
        const number = read(value, path, flaws);
        if (typeof number !== "number" || !Number.isFinite(number) || Number.isSafeInteger(number))
          return number;
        const most = Number.MAX_SAFE_INTEGER;
        if (!Number.isInteger(number)) flaws.push(wrongType("int", value, path));
        else if (number > 0) flaws.push({ path, message: tooBig(`int to be <=${most}`), isFinal: true });
        else flaws.push({ path, message: tooSmall(`int to be >=-${most}`), isFinal: true });
        return number;
      },
    });
  }

  positive(): this {
    return this.check((number) => ({ flaw: number > 0 ? undefined : tooSmall("number to be >0") }), {
      exclusiveMinimum: 0,
    });
  }

  min(least: number): this {
    return this.check(
      (number) => ({ flaw: number < least ? tooSmall(`number to be >=${least}`) : undefined }),
      { minimum: least },
    );
  }

  max(most: number): this {
    return this.check((number) => ({ flaw: number > most ? tooBig(`number to be <=${most}`) : undefined }), {
      maximum: most,
    });
  }
}

class ListType<Item> extends InputType<Item[]> {
  min(least: number): this {
    return this.check(
      ({ length }) => ({ flaw: length < least ? tooSmall(`array to have >=${least} items`) : undefined }),
      { minItems: least },
    );
  }

  max(most: number): this {
    return this.check(
      ({ length }) => ({ flaw: length > most ? tooBig(`array to have <=${most} items`) : undefined }),
      { maxItems: most },
    );
  }
}

type Shape = Readonly<Record<string, InputType<unknown>>>;

type OptionalKey<Fields extends Shape> = {
  [Key in keyof Fields]: undefined extends Infer<Fields[Key]> ? Key : never;
}[keyof Fields];

type ValueOf<Fields extends Shape> = {
  [Key in Exclude<keyof Fields, OptionalKey<Fields>>]: Infer<Fields[Key]>;
} & {
  [Key in OptionalKey<Fields>]?: Infer<Fields[Key]>;
};

class ObjectType<Fields extends Shape> extends InputType<ValueOf<Fields>> {
  readonly fields: Fields;

  constructor(parts: Parts & { readonly fields?: Fields }) {
    super(parts);
    // Every copy is made of the parts of the first, which has them.
    this.fields = parts.fields as Fields;
  }

  extend(more: Shape): ObjectType<Shape> {
    return object({ ...this.fields, ...more });
  }

  omit(left: keyof Fields): ObjectType<Shape> {
    return object(Object.fromEntries(Object.entries(this.fields).filter(([key]) => key !== left)));
  }
}

/** An object of these fields; others are left out of it. */
export function object<Fields extends Shape>(fields: Fields): ObjectType<Fields> {
  const entries = Object.entries(fields);
  const required = entries.flatMap(([key, type]) => (type.mayBeAbsent ? [] : [key]));
  return new ObjectType({
    fields,
    schema: {
      type: "object",
      properties: Object.fromEntries(entries.map(([key, type]) => [key, type.jsonSchema])),
      ...(required.length === 0 ? {} : { required }),
    },
    read(value, path, flaws) {
      if (!isRecord(value)) {
        flaws.push(wrongType("object", value, path));
        return value;
      }
      const read = entries.map(([key, type]) => {
        const given = Object.hasOwn(value, key) ? value[key] : undefined;
        return [key, type.readAt(given, [...path, key], flaws)] as const;
      });
      return Object.fromEntries(read.filter(([, field]) => field !== undefined));
    },
  });
}

export function string(): TextType {
  return new TextType({ schema: { type: "string" }, read: readKind("string") });
}

export function number(): NumberType {
  return new NumberType({ schema: { type: "number" }, read: readKind("number") });
}

export function boolean(): InputType<boolean> {
  return new InputType({ schema: { type: "boolean" }, read: readKind("boolean") });
}

export function unknown(): InputType<unknown> {
  return new InputType({ schema: {}, read: (value) => value });
}

/** One of these words. */
export function oneOf<const Words extends readonly string[]>(words: Words): InputType<Words[number]> {
  const shown = words.map((word) => JSON.stringify(word)).join("|");
  return new InputType({
    schema: { type: "string", enum: words },
    read(value, path, flaws) {
      if (typeof value !== "string" || !words.includes(value))
        flaws.push({ path, message: `Invalid option: expected one of ${shown}`, isFinal: true });
      return value;
    },
  });
}

export function array<Item>(item: InputType<Item>): ListType<Item> {
  return new ListType({
    schema: { type: "array", items: item.jsonSchema },
    read(value, path, flaws) {
      if (Array.isArray(value)) return value.map((each, at) => item.readAt(each, [...path, at], flaws));
      flaws.push(wrongType("array", value, path));
      return value;
    },
  });
}

/** An object of any keys. */
export function record<Item>(item: InputType<Item>): InputType<Record<string, Item>> {
  return new InputType({
    schema: { type: "object", additionalProperties: item.jsonSchema },
    read(value, path, flaws) {
      if (!isRecord(value)) {
        flaws.push(wrongType("record", value, path));
        return value;
      }
      const entries = Object.entries(value).filter(([key]) => key !== "__proto__");
      return Object.fromEntries(
        entries.map(([key, each]) => [key, item.readAt(each, [...path, key], flaws)]),
      );
    },
  });
}

/** The first of these that the value is. */
export function union<const Types extends readonly InputType<unknown>[]>(
  types: Types,
): InputType<Infer<Types[number]>> {
  return new InputType({
    schema: { anyOf: types.map(({ jsonSchema }) => jsonSchema) },
    read(value, path, flaws) {
      for (const type of types) {
        const reading = type.safeParse(value);
        if (reading.success) return reading.data;
      }
      flaws.push({ path, message: "Invalid input", isFinal: true });
      return value;
    },
  });
}

/** What is given is changed before it is checked. */
export function preprocess<Type extends InputType<unknown>>(
  change: (value: unknown) => unknown,
  type: Type,
): InputType<Infer<Type>> {
  return new InputType({
    schema: type.jsonSchema,
    mayBeAbsent: type.mayBeAbsent,
    read: (value, path, flaws) => type.readAt(change(value), path, flaws),
  });
}

/** For models that send numbers as texts, or texts as numbers. */
export const coerce = {
  string: (): TextType =>
    new TextType({
      schema: { type: "string" },
      read: (value, path, flaws) =>
        readKind("string")(
          typeof value === "object" || value === undefined ? value : String(value),
          path,
          flaws,
        ),
    }),
  number: (): NumberType =>
    new NumberType({
      schema: { type: "number" },
      read: (value, path, flaws) => {
        const isText = typeof value === "string" && value.trim() !== "";
        return readKind("number")(isText ? Number(value) : value, path, flaws);
      },
    }),
};

function readKind(kind: "string" | "number" | "boolean"): Read {
  return (value, path, flaws) => {
    const isUsable = kind !== "number" || Number.isFinite(value);
    if (typeof value !== kind || !isUsable) flaws.push(wrongType(kind, value, path));
    return value;
  };
}

function wrongType(expected: string, value: unknown, path: readonly PropertyKey[]): Flaw {
  return {
    path,
    message: `Invalid input: expected ${expected}, received ${kindNameOf(value)}`,
    isFinal: true,
  };
}

function kindNameOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : typeof value;
}

function tooSmall(expected: string): string {
  return `Too small: expected ${expected}`;
}

function tooBig(expected: string): string {
  return `Too big: expected ${expected}`;
}
