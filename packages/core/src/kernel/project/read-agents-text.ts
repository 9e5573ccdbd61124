import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { readSessionAgents } from "@retinue/config/agents/read-definition-object.ts";

/** Agents that are written as one JSON object, keyed by name. */
export interface AgentsText {
  readonly definitions: readonly AgentDefinition[];
  readonly diagnostics: readonly Diagnostic[];
  /** It is not JSON, not an object, or has an agent that cannot be used. */
  readonly isBroken: boolean;
}

/** Reads agents from JSON; diagnostics name `file` and the line. */
export function readAgentsText(text: string, file: string): AgentsText {
  const document = parseJsonDocument(text, file);
  if (document.diagnostic !== undefined)
    return { definitions: [], diagnostics: [document.diagnostic], isBroken: true };
  const { definitions, diagnostics } = readSessionAgents(document.value, document.locate, file);
  const isObject = typeof document.value === "object" && !Array.isArray(document.value);
  const hasErrors = diagnostics.some(({ severity }) => severity === "error");
  return { definitions, diagnostics, isBroken: !isObject || document.value === null || hasErrors };
}
