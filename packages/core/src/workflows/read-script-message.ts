import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { ScriptMessage, StepOptions } from "./script-message.ts";

/** Reads a message of a script, which is not trusted: only what is understood completely is taken. */
export function readScriptMessage(value: unknown): ScriptMessage | undefined {
  if (!isRecord(value)) return undefined;
  const { type, id } = value;
  switch (type) {
    case "agent": {
      const { prompt } = value;
      const options = readOptions(value["options"]);
      if (!isCall(id) || typeof prompt !== "string" || options === undefined) return undefined;
      return { type, id, prompt, options };
    }
    case "workflow": {
      const { name, scriptPath, args } = value;
      if (!isCall(id) || !isText(name) || !isText(scriptPath) || !isText(args)) return undefined;
      return {
        type,
        id,
        ...(name === undefined ? {} : { name }),
        scriptPath,
        args,
      };
    }
    case "phase":
      return typeof value["title"] === "string" ? { type, title: value["title"] } : undefined;
    case "log":
    case "failure":
      return typeof value["text"] === "string" ? { type, text: value["text"] } : undefined;
    case "returned": {
      const { value: json } = value;
      if (json === undefined) return { type };
      return typeof json === "string" && isJson(json) ? { type, value: json } : undefined;
    }
    case "threw": {
      const { name, message, line } = value;
      if (typeof name !== "string" || typeof message !== "string") return undefined;
      return { type, name, message, ...(isCall(line) ? { line } : {}) };
    }
    default:
      return undefined;
  }
}

const textOptions = ["label", "phase", "model", "effort", "isolation", "agentType"] as const;

function readOptions(value: unknown): StepOptions | undefined {
  if (!isRecord(value)) return undefined;
  const { schema, verify } = value;
  if (!textOptions.every((key) => isText(value[key]))) return undefined;
  return {
    ...Object.fromEntries(
      textOptions.flatMap((key) => (value[key] === undefined ? [] : [[key, value[key]]])),
    ),
    // What is no object, and checks that cannot be read, are refused with the step, whose promise then rejects.
    ...(schema === undefined ? {} : { schema: schema as NonNullable<StepOptions["schema"]> }),
    ...(verify === undefined ? {} : { verify: verify as NonNullable<StepOptions["verify"]> }),
  };
}

function isCall(id: unknown): id is number {
  return typeof id === "number" && Number.isSafeInteger(id) && id > 0;
}

function isText(value: unknown): value is string | undefined {
  return value === undefined || typeof value === "string";
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
