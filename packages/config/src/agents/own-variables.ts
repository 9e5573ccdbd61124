import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import type { JsonSchema } from "@retinue/base/foundation/json-schema.ts";
import { isProviderKey } from "@retinue/gate/command-environment.ts";
import { isSafeVariable, isSteeringVariable } from "@retinue/gate/shell/private-name.ts";
import { isForbiddenToRepositories } from "../settings/settings-layer.ts";

/** Environment variables for the commands of one agent. */
export type OwnVariables = Readonly<Record<string, string>>;

export type VariablesReading =
  | { readonly type: "variables"; readonly variables: OwnVariables }
  | { readonly type: "unreadable"; readonly reason: string };

const maxVariables = 100;

export const variablesSchema: JsonSchema = {
  type: "object",
  maxProperties: maxVariables,
  additionalProperties: { type: ["string", "number", "boolean"] },
};

/** Reads names with their values. What cannot be read makes the whole unreadable: a variable that is missing changes what commands do. */
export function readVariables(value: unknown): VariablesReading {
  if (!isRecord(value)) return unreadable(`it is not a mapping of names to values, but ${quote(value)}`);
  const entries = Object.entries(value);
  if (entries.length > maxVariables) return unreadable(`it has more than ${maxVariables} variables`);
  const flaw = entries.find(([, written]) => textOf(written) === undefined);
  if (flaw !== undefined) return unreadable(`the value of ${quote(flaw[0])} is not a string`);
  const variables = new Map(entries.map(([name, written]) => [name, textOf(written) ?? ""]));
  return { type: "variables", variables: Object.fromEntries(variables) };
}

function textOf(written: unknown): string | undefined {
  const text = typeof written === "number" || typeof written === "boolean" ? String(written) : written;
  return typeof text === "string" && !text.includes("\0") ? text : undefined;
}

function unreadable(reason: string): VariablesReading {
  return { type: "unreadable", reason };
}

/**
 * Why an agent may not have a variable. A model sets only what it could put before a command without a question; people set
 * what steers no program and pays for nothing.
 */
export function refuseVariable(name: string, by: "person" | "model"): string | undefined {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return `${quote(name)} is not a valid variable name`;
  if (isSafeVariable(name)) return undefined;
  if (by === "model")
    return `a model sets only variables that change what commands print or how they build, such as NODE_ENV or CI, and not ${name}`;
  const spellings = [name, name.toUpperCase()];
  if (spellings.some((each) => isSteeringVariable(each) || isForbiddenToRepositories(each)))
    return `${name} changes which programs run or what they load`;
  return spellings.some(isProviderKey) ? `${name} holds credentials for models` : undefined;
}
