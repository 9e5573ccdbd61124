import { isRecord } from "@retinue/base/foundation/json-record.ts";
import {
  type JsonSchema,
  looseWords,
  orNull,
  type SchemaName,
  schemaAddress,
  schemas,
} from "@retinue/base/foundation/json-schema.ts";
import { definitionFields } from "../agents/agent-definition.ts";
import { fieldDefinitions } from "../agents/field-schemas.ts";
import { hookEventNames, hookEvents, isFiredEvent } from "../hooks/hook-input.ts";
import { hookHandlerDefinitions } from "../hooks/read-hook-handler.ts";
import { hooksFileKeys } from "../hooks/read-hooks.ts";
import { lockSchema } from "../lock/lock-file.ts";
import { serverKeys } from "../mcp/mcp-server-config.ts";
import type { McpKind } from "../mcp/mcp-transport.ts";
import { oauthSchema } from "../mcp/read-oauth.ts";
import { transportWords } from "../mcp/read-transport.ts";
import { agentLimitsSchema } from "../settings/agent-limits.ts";
import { sandboxSchema } from "../settings/limit-sandbox.ts";
import { modeReader, switchesWithoutEffect, switchReaders } from "../settings/permission-settings.ts";
import { keysWithoutEffect, managedOnlyKeys, plainReaders } from "../settings/plain-settings.ts";
import { environmentVariables, textList, type ValueReader } from "../settings/read-environment.ts";
import { skillFieldReaders } from "../skills/skill-fields.ts";
import type { WorkflowMeta, WorkflowPhase } from "../workflows/workflow-meta.ts";
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

const count = { type: "integer", minimum: 1 };

const phaseFields: Readonly<Record<keyof WorkflowPhase, JsonSchema>> = {
  title: { description: "The name of the phase.", type: "string" },
  detail: { description: "What happens in it.", type: "string" },
  model: { description: "The model of its steps.", type: "string" },
  maxBudgetUsd: { description: "US dollars for its steps together.", type: "number", exclusiveMinimum: 0 },
  maxTokens: { description: "Tokens for its steps together.", ...count },
  maxAgents: { description: "How many agents it may start.", ...count },
};

const metaFields: Readonly<Record<keyof WorkflowMeta, JsonSchema>> = {
  name: { description: "The name of the workflow.", ...schemas.text },
  description: { description: "What it does; a model decides by this text.", ...schemas.text },
  whenToUse: { description: "More about when to use it.", type: "string" },
  phases: {
    description: "Its phases, in order.",
    type: "array",
    items: { type: "object", properties: phaseFields, required: ["title"] },
  },
};

/** The value of `meta` in the script of a workflow. */
export function workflowMetaSchema(): JsonSchema {
  return { type: "object", properties: metaFields, required: ["name", "description"] };
}

const handler = { $ref: "#/definitions/hookHandler" };
const group = { $ref: "#/definitions/hookGroup" };

/** What `readHooks` takes without a warning, with what it refers to. */
export function hookDefinitions(): Readonly<Record<string, JsonSchema>> {
  const matcher = {
    description: "Which tools, agents or other subjects: names as in `Edit|Write`, or a regular expression.",
    anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }, schemas.null],
  };
  return {
    hooks: {
      anyOf: [
        { type: "object", properties: events(), additionalProperties: false },
        { type: "array", maxItems: 0 },
      ],
    },
    hookGroup: {
      anyOf: [
        {
          type: "object",
          properties: {
            matcher,
            hooks: {
              description: "What runs.",
              anyOf: [{ type: "array", items: handler }, handler, schemas.null],
            },
          },
          required: ["hooks"],
          not: { anyOf: [{ required: ["command"] }, { required: ["url"] }] },
        },
        { allOf: [handler], properties: { matcher }, not: { required: ["hooks"] } },
      ],
    },
    hookGroups: { anyOf: [{ type: "array", items: group }, group, schemas.null] },
    ...hookHandlerDefinitions(),
  };
}

function events(): JsonSchema {
  const properties = hookEventNames.map((name) => {
    const { matches } = hookEvents[name];
    const subject = matches === undefined ? "It has no matcher." : `The matcher is for the ${matches}.`;
    const description = `Hooks for ${name}. ${isFiredEvent(name) ? subject : "Retinue never fires this event."}`;
    return [name, { description, anyOf: [{ $ref: "#/definitions/hookGroups" }] }];
  });
  return Object.fromEntries(properties);
}

/** A whole `hooks.json`: the events under `hooks`, or at the top. */
export function hooksFileSchema(): JsonSchema {
  const described = Object.fromEntries([...hooksFileKeys].map((key) => [key, {}]));
  return {
    type: "object",
    anyOf: [
      {
        properties: {
          hooks: { description: "The hooks by event.", ...orNull({ $ref: "#/definitions/hooks" }) },
        },
        required: ["hooks"],
      },
      { properties: { ...events(), ...described }, additionalProperties: false },
    ],
  };
}

const scalar = { type: ["string", "number", "boolean"] };
const word = schemas.text;
const texts = orNull({ type: "object", additionalProperties: scalar });

/** What each key is for. Which kind of value it takes depends on the kind of server. */
const described = {
  type: {
    description: "How it is reached; without it, by command or url.",
    anyOf: [{ enum: ["stdio", "http", "sse"] }, {}],
  },
  command: { description: "The program that is started." },
  args: { description: "Its arguments." },
  env: { description: "Its variables; variables in their values are replaced." },
  cwd: { description: "The folder it is started in." },
  url: { description: "Its address, http or https; variables in it are replaced." },
  headers: { description: "Headers of each request; variables in them are replaced." },
  headersHelper: { description: "A command that prints more headers as JSON." },
  oauth: { description: "How to log in, where the server's own metadata is not enough." },
};

/** A server that can be used, and one that lives in a program. */
export function mcpServerSchema(): JsonSchema {
  const hasCommand = { required: ["command"] };
  return {
    type: "object",
    properties: {
      ...described,
      timeout: {
        description: "Timeout of a call, in milliseconds.",
        anyOf: [
          { type: "number", exclusiveMinimum: 0 },
          { type: "string", pattern: "^\\s*0*[1-9]\\d*\\s*$" },
          schemas.null,
        ],
      },
      disabled: { description: "Whether it is disabled.", ...orNull({ type: "boolean" }) },
      enabled: { description: "False disables it.", ...orNull({ type: "boolean" }) },
      alwaysLoad: { description: "Its tools are always in the prompt.", ...orNull({ type: "boolean" }) },
    },
    anyOf: [
      { allOf: [hasKind("stdio"), program] },
      { allOf: [{ anyOf: [hasKind("http"), hasKind("sse")] }, address] },
      { allOf: [noKind, hasCommand, program] },
      { allOf: [noKind, { not: hasCommand }, address] },
      hasKind("sdk"),
    ],
  };
}

const program: JsonSchema = {
  properties: {
    command: {
      anyOf: [word, { type: "array", items: [word], additionalItems: { type: "string" }, minItems: 1 }],
    },
    args: { anyOf: [{ type: "array", items: scalar }, { type: "string" }, schemas.null] },
    env: texts,
  },
  required: ["command"],
};

const url = { type: "string", pattern: "\\$\\{|^\\s*[hH][tT][tT][pP][sS]?:" };

/** `serverUrl` and `httpUrl` are what other clients call it. */
const address: JsonSchema = {
  properties: { headers: texts, oauth: orNull(oauthSchema()) },
  anyOf: [
    { properties: { url }, required: ["url"] },
    { properties: { url: schemas.null, serverUrl: url }, required: ["serverUrl"] },
    { properties: { url: schemas.null, serverUrl: schemas.null, httpUrl: url }, required: ["httpUrl"] },
  ],
};

/** `transport` is what some clients call `type`. */
function hasKind(kind: McpKind): JsonSchema {
  const words = looseWords([...transportWords].flatMap(([each, meant]) => (meant === kind ? each : [])));
  return {
    anyOf: [
      { properties: { type: words }, required: ["type"] },
      { properties: { type: schemas.null, transport: words }, required: ["transport"] },
    ],
  };
}

const noKind: JsonSchema = {
  anyOf: [
    { properties: { type: { not: { anyOf: [schemas.null, word] } } }, required: ["type"] },
    { properties: { type: schemas.null, transport: { not: word } } },
  ],
};

/** A file of servers: under `mcpServers` or `servers`, or the servers alone. */
export function mcpFileSchema(): JsonSchema {
  const servers = orNull({ type: "object", additionalProperties: { $ref: "#/definitions/mcpServer" } });
  const looksLikeServer = {
    anyOf: serverKeys.map((key) => ({ properties: { [key]: { not: { type: "object" } } }, required: [key] })),
  };
  return {
    type: "object",
    properties: {
      mcpServers: { description: "The servers by name.", ...servers },
      servers: { description: "The servers by name, where there are no mcpServers." },
    },
    anyOf: [
      { required: ["mcpServers"] },
      { properties: { servers }, required: ["servers"] },
      {
        additionalProperties: {
          anyOf: [
            { not: { allOf: [{ type: "object" }, looksLikeServer] } },
            { $ref: "#/definitions/mcpServer" },
          ],
        },
      },
    ],
  };
}
