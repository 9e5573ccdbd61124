import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { AgentDefinition } from "../../definitions/agent-definition.ts";
import { readSessionAgents } from "../../definitions/read-definition-object.ts";
import { type Diagnostic, placeText } from "../../foundation/diagnostic.ts";
import { parseJsonDocument } from "../../foundation/json-document.ts";
import { shown } from "../../foundation/json-record.ts";
import { misuse } from "./session-options.ts";

/** What `--agents` gave. */
export interface AgentsOption {
  readonly definitions: readonly AgentDefinition[];
  readonly diagnostics: readonly Diagnostic[];
  /** What its problems name as their file: the path, or the option itself. */
  readonly file: string;
  readonly text: string;
  /** Nothing of it can be used: it is not JSON, or not an object. */
  readonly isBroken: boolean;
}

/** Reads the value of `--agents`: a JSON object, or the path of a file that holds one. */
export function loadAgentsOption(value: string, cwd: string): AgentsOption {
  const isJson = /^\s*[{["]/.test(value);
  const file = isJson ? "--agents" : resolve(cwd, value);
  const text = isJson ? value : readText(value, file);
  const document = parseJsonDocument(text, file);
  if (document.diagnostic !== undefined) {
    return { definitions: [], diagnostics: [document.diagnostic], file, text, isBroken: true };
  }
  const { definitions, diagnostics } = readSessionAgents(document.value, document.locate, file);
  const isObject = typeof document.value === "object" && !Array.isArray(document.value);
  return { definitions, diagnostics, file, text, isBroken: !isObject || document.value === null };
}

/** The sentence with which a command ends that cannot do without the agents it was given. */
export function refuseBrokenOption({ diagnostics, file }: AgentsOption) {
  const [diagnostic] = diagnostics;
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
      `--agents is neither JSON nor a file that can be read: ${shown(value)} (${reason}).`,
      advice,
    );
  }
}
