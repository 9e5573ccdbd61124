import { isRecord, type JsonRecord } from "../foundation/json-record.ts";

/** Reads one value tolerantly: undefined means it is not what was expected. */
export interface ValueReader<T> {
  readonly expected: string;
  readonly read: (value: unknown) => T | undefined;
}

export const flag: ValueReader<boolean> = {
  expected: "true or false",
  read: (value) => {
    if (value === "true") return true;
    if (value === "false") return false;
    return typeof value === "boolean" ? value : undefined;
  },
};

export const text: ValueReader<string> = {
  expected: "a text that is not empty",
  read: (value) => (typeof value === "string" && value.trim() !== "" ? value : undefined),
};

/** A single text is taken for a list of one. */
export const textList: ValueReader<readonly string[]> = {
  expected: "a list of texts",
  read: (value) => {
    if (typeof value === "string") return [value];
    return Array.isArray(value) && value.every((entry) => typeof entry === "string") ? value : undefined;
  },
};

export const object: ValueReader<JsonRecord> = {
  expected: "an object",
  read: (value) => (isRecord(value) ? value : undefined),
};

export const objectList: ValueReader<readonly JsonRecord[]> = {
  expected: "a list of objects",
  read: (value) => (Array.isArray(value) && value.every(isRecord) ? value : undefined),
};

export const flagOrTextList: ValueReader<boolean | readonly string[]> = {
  expected: "true, false or a list of texts",
  read: (value) => (typeof value === "string" ? undefined : (flag.read(value) ?? textList.read(value))),
};

export const textOrNumber: ValueReader<string | number> = {
  expected: "a text or a number",
  read: (value) => text.read(value) ?? (typeof value === "number" ? value : undefined),
};

export function integer(least: number, most = Number.MAX_SAFE_INTEGER): ValueReader<number> {
  const limit = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  return {
    expected: `a whole number ${limit}`,
    read: (value) => {
      const number = typeof value === "string" && /^\s*[+-]?\d+\s*$/.test(value) ? Number(value) : value;
      return typeof number === "number" && Number.isSafeInteger(number) && number >= least && number <= most
        ? number
        : undefined;
    },
  };
}

export function numberBetween(least: number, most: number): ValueReader<number> {
  return {
    expected: `a number from ${least} to ${most}`,
    read: (value) => {
      const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
      return typeof number === "number" && number >= least && number <= most ? number : undefined;
    },
  };
}

/** `"disable"` is the documented word; the one that writes true means the same. */
export const disable: ValueReader<"disable"> = {
  expected: '"disable"',
  read: (value) => (flag.read(value) === true || value === "disable" ? "disable" : undefined),
};

/** A flag means an object with nothing but `enabled`. */
export const enabledObject: ValueReader<JsonRecord> = {
  expected: "an object",
  read: (value) => {
    const enabled = flag.read(value);
    return enabled === undefined ? object.read(value) : { enabled };
  },
};

export function choice<const T extends string>(...choices: readonly T[]): ValueReader<T> {
  return {
    expected: choices.map((each) => `"${each}"`).join(" or "),
    read: (value) => choices.find((each) => each === value),
  };
}
