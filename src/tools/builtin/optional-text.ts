import * as z from "zod";

/** Models send numbers as text and null for what they leave out; both are taken for what was meant. */
export function optionalNumber(description: string) {
  return z.preprocess(readNumber, z.number().optional()).describe(description);
}

export function optionalFlag(description: string) {
  return z.preprocess(readFlag, z.boolean().optional()).describe(description);
}

export function optionalText(description: string) {
  return z.preprocess(dropEmpty, z.string().optional()).describe(description);
}

export function optionalChoice<const Choices extends readonly [string, ...string[]]>(
  choices: Choices,
  description: string,
) {
  return z.preprocess(dropEmpty, z.enum(choices).optional()).describe(description);
}

function dropEmpty(value: unknown): unknown {
  return value === null || value === "" ? undefined : value;
}

function readNumber(value: unknown): unknown {
  const given = dropEmpty(value);
  const number = typeof given === "string" && given.trim() !== "" ? Number(given) : given;
  return typeof number === "number" && Number.isFinite(number) ? Math.trunc(number) : given;
}

function readFlag(value: unknown): unknown {
  const given = dropEmpty(value);
  if (typeof given !== "string") return given;
  const word = given.trim().toLowerCase();
  if (word === "true") return true;
  return word === "false" ? false : given;
}
