import type { AgentDefinition } from "../../definitions/agent-definition.ts";
import { readSessionAgents } from "../../definitions/read-definition-object.ts";
import type { Diagnostic } from "../../foundation/diagnostic.ts";
import { parseJsonDocument } from "../../foundation/parse-json-document.ts";

/** Agents that are written as one JSON object, keyed by name. */
export interface AgentsText {
  readonly definitions: readonly AgentDefinition[];
  readonly diagnostics: readonly Diagnostic[];
  /** Nothing of it can be used: it is not JSON, or not an object. */
  readonly isBroken: boolean;
}

/** Reads agents from JSON; diagnostics name `file` and the line. */
export function readAgentsText(text: string, file: string): AgentsText {
  const document = parseJsonDocument(text, file);
  if (document.diagnostic !== undefined)
    return { definitions: [], diagnostics: [document.diagnostic], isBroken: true };
  const { definitions, diagnostics } = readSessionAgents(document.value, document.locate, file);
  const isObject = typeof document.value === "object" && !Array.isArray(document.value);
  return { definitions, diagnostics, isBroken: !isObject || document.value === null };
}
