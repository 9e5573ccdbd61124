import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { AgentScope } from "@retinue/config/agents/agent-source.ts";
import { readAgentFile } from "@retinue/config/agents/parse-agent-definition.ts";
import type { HookRule } from "@retinue/config/hooks/read-hooks.ts";
import { type CorpusEntry, compareFields, type Expectation, type Mismatch } from "./corpus-manifest.ts";

const softNames = {
  descriptionHead: "description",
  bodyHead: "body",
  initialPromptHead: "initialPrompt",
  // Whether a file loads decides what else there is to compare.
  reason: "loads",
};

/** Reads an agent file the way discovery does and compares it with its expectation. */
export function compareAgent(entry: CorpusEntry, text: string): Mismatch[] {
  const scope: AgentScope = entry.scope ?? "project";
  const { definition, diagnostics } = readAgentFile(text, { file: entry.file, scope });
  const { expect } = entry;
  if (definition === undefined) {
    const error =
      diagnostics.find((diagnostic) => diagnostic.severity === "error") ??
      diagnostics.find((diagnostic) => diagnostic.code === "no-frontmatter" || diagnostic.code === "no-name");
    const { loads, reason, diagnosticLine, soft } = expect;
    const narrowed = withoutUndefined({ loads, reason, diagnosticLine, soft });
    const actual = { loads: false, reason: error?.code, diagnosticLine: error?.line };
    return compareFields(narrowed, actual, softNames);
  }
  if (expect["loads"] === false && expect.soft?.includes("loads")) return [];
  return compareFields(expect, { ...describe(definition), reason: reasonOf(diagnostics, expect) }, softNames);
}

/** A file that loads in spite of a have no carries the have no as its reason. */
function reasonOf(diagnostics: readonly { code: string }[], expect: Expectation): string | null {
  const reason = expect["reason"];
  const isMissing = diagnostics.filter(
    (diagnostic) => diagnostic.code === "no-name" || diagnostic.code === "no-description",
  );
  if (isMissing.length === 0) return null;
  return isMissing.some((diagnostic) => diagnostic.code === reason)
    ? String(reason)
    : (isMissing[0]?.code ?? null);
}

function describe(definition: AgentDefinition): Record<string, unknown> {
  const written = (key: string): unknown => definition.written[key]?.value;
  return {
    ...definition,
    loads: true,
    tools: definition.tools ?? null,
    model: definition.model ?? null,
    permissionMode: definition.permissionMode ?? null,
    memory: definition.memory ?? written("memory"),
    descriptionHead: head(definition.description),
    bodyHead: head(definition.prompt),
    initialPromptHead: head(definition.initialPrompt ?? ""),
    hooks: summariseHooks(definition.hooks ?? []),
    mcpServers: definition.mcpServers?.map((server) => ({
      name: server.name,
      inline: server.type === "inline",
      transport: server.type === "inline" ? transportOf(server.config) : undefined,
    })),
  };
}

function transportOf(config: Readonly<Record<string, unknown>>): unknown {
  return config["type"] ?? (config["command"] === undefined ? "http" : "stdio");
}

/** The first 60 UTF-16 units of a trimmed text; null represents no text. */
function head(text: string): string | null {
  return text === "" ? null : text.trim().slice(0, 60);
}

export function summariseHooks(hooks: readonly HookRule[]): unknown[] {
  return hooks.map(({ event, matcher, handler }) => ({
    event,
    matcher: matcher ?? null,
    type: handler.type,
    command: handler.command,
  }));
}

function withoutUndefined(record: Record<string, unknown>): Expectation {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}
