import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import type { Diagnostic, Locate } from "@retinue/base/foundation/diagnostic.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { AgentScope } from "./agent-source.ts";
import { definitionFromFrontmatter, type ParsedAgent } from "./parse-agent-definition.ts";
import { type FrontmatterField, isMapping } from "./read-frontmatter.ts";

export interface SessionAgents {
  readonly definitions: readonly AgentDefinition[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the object of `--agents`: keyed by agent name, with `prompt` for the body. */
export function readSessionAgents(value: unknown, locate: Locate, file?: string): SessionAgents {
  checkArgument("The second argument of readSessionAgents()", checks.call, locate);
  if (!isMapping(value)) {
    return { definitions: [], diagnostics: [notAnObject("The agents", file, locate([]))] };
  }
  // Editors know the form of a file by its `$schema`.
  const agents = Object.entries(value).filter(([name, fields]) => name !== "$schema" || isMapping(fields));
  const readings = agents.map(([name, fields]): ParsedAgent => {
    const locateInside: Locate = (path) => locate([name, ...path]);
    if (!isMapping(fields))
      return { diagnostics: [notAnObject(`The agent ${JSON.stringify(name)}`, file, locateInside([]))] };
    return readDefinitionObject(name, fields, {
      scope: "session",
      locate: locateInside,
      file,
    });
  });
  return {
    definitions: readings.flatMap(({ definition }) => (definition === undefined ? [] : [definition])),
    diagnostics: readings.flatMap(({ diagnostics }) => diagnostics),
  };
}

export interface DefinitionObjectOptions {
  readonly scope: AgentScope;
  readonly file?: string;
  readonly locate?: Locate;
}

/** Reads one definition given as an object, through the same field readers as a file. */
export function readDefinitionObject(
  name: string,
  object: Readonly<Record<string, unknown>>,
  { scope, file, locate = () => undefined }: DefinitionObjectOptions,
): ParsedAgent {
  const fields = new Map<string, FrontmatterField>();
  const entries = Object.entries({ ...object, name });
  for (const [key, value] of entries) {
    if (key === "prompt" || value === undefined) continue;
    const text = typeof value === "string" ? value : JSON.stringify(value);
    fields.set(key, { key, value, text: text ?? "", place: locate([key]) ?? { line: 1, column: 1 } });
  }
  const { prompt } = object;
  if (prompt !== undefined && typeof prompt !== "string") {
    const message = `The prompt of ${JSON.stringify(name)} is not a string.`;
    return {
      diagnostics: [
        {
          severity: "error",
          code: "prompt-not-text",
          message,
          advice: 'Write "prompt": "…".',
          file,
          ...locate(["prompt"]),
        },
      ],
    };
  }
  const frontmatter = { fields, repeated: [], body: (prompt ?? "").trim(), diagnostics: [], locate };
  return definitionFromFrontmatter(frontmatter, { scope, file });
}

function notAnObject(what: string, file: string | undefined, place: object | undefined): Diagnostic {
  return {
    severity: "error",
    code: "not-an-object",
    message: `${what} must be a JSON object.`,
    advice: 'Write {"my-agent": {"description": "…", "prompt": "…"}}.',
    file,
    ...place,
  };
}
