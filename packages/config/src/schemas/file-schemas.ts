import { isRecord } from "@retinue/base/foundation/json-record.ts";
import {
  type JsonSchema,
  orNull,
  type SchemaName,
  schemaAddress,
  schemas,
} from "@retinue/base/foundation/json-schema.ts";
import { definitionFields } from "../agents/agent-definition.ts";
import { fieldDefinitions } from "../agents/field-schemas.ts";
import { hookDefinitions, hooksFileSchema } from "../hooks/hooks-schema.ts";
import { lockSchema } from "../lock/lock-file.ts";
import { mcpFileSchema, mcpServerSchema } from "../mcp/mcp-server-schema.ts";
import { agentLimitsSchema } from "../settings/agent-limits.ts";
import { sandboxSchema } from "../settings/limit-sandbox.ts";
import { modeReader, switchesWithoutEffect, switchReaders } from "../settings/permission-settings.ts";
import { keysWithoutEffect, managedOnlyKeys, plainReaders } from "../settings/plain-settings.ts";
import { environmentVariables, textList, type ValueReader } from "../settings/read-environment.ts";
import { skillFieldReaders } from "../skills/skill-fields.ts";
import { workflowMetaSchema } from "../workflows/workflow-meta-schema.ts";
import { permissionDocs, settingDocs, skillDocs } from "./setting-docs.ts";

/** A kind of file with its schema. */
export interface FileSchema {
  /** Which files, for people. */
  readonly files: string;
  readonly schema: () => JsonSchema;
}

/** Schemas of the files that this package reads: what a reader takes without a warning, its schema takes. */
export const fileSchemas: Readonly<Record<Exclude<SchemaName, "eval">, FileSchema>> = {
  settings: { files: "settings.json, settings.local.json, managed-settings.json", schema: settingsSchema },
  agent: { files: "the frontmatter of .claude/agents/*.md", schema: agentSchema },
  agents: { files: "the value of --agents", schema: agentsSchema },
  skill: { files: "the frontmatter of SKILL.md and .claude/commands/*.md", schema: skillSchema },
  mcp: { files: ".mcp.json and the value of --mcp-config", schema: mcpFileSchema },
  hooks: { files: "hooks/hooks.json of a plugin", schema: hooksFileSchema },
  workflow: { files: "the value of meta in the script of a workflow", schema: workflowMetaSchema },
  lock: { files: "retinue.lock", schema: lockSchema },
};

/** The whole document: its address, a title, `$schema` as a key, and the definitions that it refers to. */
export function schemaDocument(name: SchemaName, { files, schema }: FileSchema): JsonSchema {
  const { properties, ...rest } = schema();
  const own = { description: "The address of this schema, for editors.", type: "string" };
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    $id: schemaAddress(name),
    title: `Retinue: ${name}`,
    description: `For ${files}.`,
    ...rest,
    properties: { $schema: own, ...(isRecord(properties) ? properties : {}) },
    ...referredDefinitions(rest, properties),
  };
}

function referredDefinitions(...parts: readonly unknown[]): { readonly definitions?: JsonSchema } {
  const all: Readonly<Record<string, JsonSchema>> = {
    ...fieldDefinitions,
    ...hookDefinitions(),
    mcpServer: mcpServerSchema(),
    limits: agentLimitsSchema(),
  };
  const found = new Map<string, JsonSchema>();
  const collect = (part: unknown): void => {
    for (const [, name = ""] of (JSON.stringify(part) ?? "").matchAll(/"#\/definitions\/(\w+)"/g)) {
      const definition = all[name];
      if (definition === undefined || found.has(name)) continue;
      found.set(name, definition);
      collect(definition);
    }
  };
  for (const part of parts) collect(part);
  return found.size === 0 ? {} : { definitions: Object.fromEntries(found) };
}

function settingsSchema(): JsonSchema {
  const plain = Object.entries<ValueReader<unknown>>(plainReaders).map(([key, reader]) => [
    key,
    // The docs have an entry for every key of the table.
    {
      description: settingText(key, settingDocs[key as keyof typeof settingDocs]),
      ...orNull(inside(key, reader)),
    },
  ]);
  const variables = [...environmentVariables].map(([name, { expected }]) => [
    name,
    { description: `Takes ${expected}.`, type: ["string", "number", "boolean"] },
  ]);
  return {
    type: "object",
    properties: {
      permissions: { description: "What agents may do.", ...orNull(permissionsSchema()) },
      hooks: { description: "What runs at events.", ...orNull({ $ref: "#/definitions/hooks" }) },
      env: {
        description: "Variables for sessions and their commands.",
        ...orNull({
          type: "object",
          properties: Object.fromEntries(variables),
          propertyNames: { pattern: "^[^=]+$" },
          additionalProperties: { type: ["string", "number", "boolean"] },
        }),
      },
      ...Object.fromEntries(plain),
    },
  };
}

function settingText(key: string, text: string): string {
  const managed = managedOnlyKeys.has(key) ? " Only in managed settings." : "";
  const why = keysWithoutEffect.get(key);
  return `${text}${managed}${why === undefined ? "" : ` It has no effect here: ${why}.`}`;
}

/** What is looked into further once the settings are read. */
function inside(key: string, { schema }: ValueReader<unknown>): JsonSchema {
  if (key === "sandbox") return { anyOf: [sandboxSchema(), schemas.flag] };
  if (key === "mcpServers" || key === "managedMcpServers")
    return { type: "object", additionalProperties: { $ref: "#/definitions/mcpServer" } };
  return schema;
}

function permissionsSchema(): JsonSchema {
  const texts = { tool: { type: "string" }, toolName: { type: "string" } };
  const inner = { args: { type: ["string", "null"] }, ruleContent: { type: ["string", "null"] } };
  const rule = {
    anyOf: [
      { type: "string" },
      {
        type: "object",
        properties: { ...texts, ...inner },
        anyOf: [{ required: ["tool"] }, { required: ["toolName"] }],
        additionalProperties: false,
      },
    ],
  };
  const rules = { anyOf: [{ type: "array", items: rule }, { type: "string" }] };
  const known: Readonly<Record<string, JsonSchema>> = {
    allow: rules,
    ask: rules,
    deny: rules,
    defaultMode: modeReader.schema,
    additionalDirectories: textList.schema,
    ...Object.fromEntries(
      Object.entries<ValueReader<unknown>>(switchReaders).map(([key, reader]) => [key, reader.schema]),
    ),
  };
  const properties = Object.entries(permissionDocs).map(([key, text]) => {
    const without = switchesWithoutEffect.has(key) ? " Not supported yet: it has no effect." : "";
    return [key, { description: `${text}${without}`, ...orNull(known[key] ?? {}) }];
  });
  return { type: "object", properties: Object.fromEntries(properties), additionalProperties: false };
}

function agentProperties(): Readonly<Record<string, JsonSchema>> {
  const properties = Object.entries(definitionFields).map(([key, { schema, docs }]) => {
    const [takes, means = "", without] = docs.map((text) => text.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
    return [
      key,
      {
        description: `${means.charAt(0).toUpperCase()}${means.slice(1)}.\nTakes: ${takes}. Without it: ${without}.`,
        ...schema,
      },
    ];
  });
  return Object.fromEntries(properties);
}

function agentSchema(): JsonSchema {
  return {
    type: "object",
    properties: agentProperties(),
    required: ["name", "description"],
    additionalProperties: false,
  };
}

function agentsSchema(): JsonSchema {
  const { name: _key, ...properties } = agentProperties();
  const prompt = { description: "The system prompt, as below the frontmatter of a file.", type: "string" };
  const agent = {
    type: "object",
    // The key is the name; one inside does not count.
    properties: { ...properties, name: {}, prompt },
    required: ["description"],
    additionalProperties: false,
  };
  return { type: "object", additionalProperties: agent };
}

function skillSchema(): JsonSchema {
  const properties = Object.entries(skillFieldReaders).map(([key, { schema }]) => [
    key,
    // The docs have an entry for every field of the table.
    { description: skillDocs[key as keyof typeof skillDocs], ...schema },
  ]);
  return { type: "object", properties: Object.fromEntries(properties) };
}
