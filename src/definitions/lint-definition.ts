import type { DocumentPath, Issue, Place, Diagnostic } from "../foundation/diagnostic.ts";
import { type AliasTable, shippedAliases } from "../model/model-aliases.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import { lintRights } from "./lint-rights.ts";
import { lintColor, lintDescription, lintModel, lintPrompt } from "./lint-texts.ts";
import { lintTools } from "./lint-tools.ts";
import { placeOfEntry } from "./place-of-entry.ts";

export interface LintFacts {
  /** Whether the folder is trusted; what only trust puts in force is told otherwise. */
  readonly trusted?: boolean;
  readonly aliases?: AliasTable;
  /** The text of the definition's file, so that one entry of a list can be pointed at. */
  readonly text?: string;
}

export type LintRule = (definition: AgentDefinition, facts: Required<Omit<LintFacts, "text">>) => Issue[];

/** What a person should know about a definition that can be read: mistakes, contradictions and weak spots. */
export function lintDefinition(definition: AgentDefinition, facts: LintFacts = {}): Diagnostic[] {
  const known = { trusted: facts.trusted ?? false, aliases: facts.aliases ?? shippedAliases };
  const { file } = definition.source;
  return rules
    .flatMap((rule) => rule(definition, known))
    .map(({ path, ...issue }) => ({
      ...issue,
      ...(file === undefined ? {} : { file }),
      ...placeOf(path, definition, facts.text),
    }));
}

const rules: readonly LintRule[] = [lintDescription, lintTools, lintModel, lintRights, lintColor, lintPrompt];

function placeOf([key, index]: DocumentPath, definition: AgentDefinition, text?: string): Place | undefined {
  const field = String(key);
  const place = Object.hasOwn(definition.written, field) ? definition.written[field]?.place : undefined;
  if (place === undefined || text === undefined || typeof index !== "number") return place;
  const list = field === "tools" ? definition.tools : definition.disallowedTools;
  return placeOfEntry(text, place, list?.[index] ?? "") ?? place;
}
