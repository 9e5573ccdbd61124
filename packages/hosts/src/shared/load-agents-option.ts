import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { placeText } from "@retinue/base/foundation/diagnostic.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { type AgentsText, readAgentsText } from "@retinue/core/kernel/project/read-agents-text.ts";
import { misuse } from "./misuse.ts";

/** What `--agents` gave. */
export interface AgentsOption extends AgentsText {
  /** What its problems name as their file: the path, or the option itself. */
  readonly file: string;
  readonly text: string;
}

/** Reads the value of `--agents`: a JSON object, or the path of a file that holds one. */
export function loadAgentsOption(value: string, cwd: string): AgentsOption {
  const isJson = /^\s*[{["]/.test(value);
  const file = isJson ? "--agents" : resolve(cwd, value);
  const text = isJson ? value : readText(value, file);
  return { ...readAgentsText(text, file), file, text };
}

/** The sentence with which a command ends that cannot do without the agents it was given. */
export function refuseBrokenOption({ diagnostics, file }: AgentsOption) {
  const diagnostic = diagnostics.find(({ severity }) => severity === "error") ?? diagnostics[0];
  const place = placeText({ ...diagnostic, file });
  return misuse(
    `${place}: The agents cannot be used: ${diagnostic?.message ?? "it is not an object."}`,
    diagnostic?.advice,
  );
}

function readText(value: string, file: string): string {
  const advice =
    'Give JSON such as {"my-agent": {"description": "…", "prompt": "…"}}, or the path of a file.';
  if (value.trim() === "") throw misuse("--agents was given nothing.", advice);
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw misuse(
      `--agents is neither JSON nor a file that can be read: ${quote(value)} (${reason}).`,
      advice,
    );
  }
}
