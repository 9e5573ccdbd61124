import { type JsonSchema, looseWords, orNull, schemas } from "@retinue/base/foundation/json-schema.ts";
import { serverKeys } from "./mcp-server-config.ts";
import type { McpKind } from "./mcp-transport.ts";
import { oauthSchema } from "./read-oauth.ts";
import { transportWords } from "./read-transport.ts";

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
  oauth: { description: "How to log in, where the server does not say it all." },
};

/** A server that can be used, and one that lives in a program. */
export function mcpServerSchema(): JsonSchema {
  const hasCommand = { required: ["command"] };
  return {
    type: "object",
    properties: {
      ...described,
      timeout: {
        description: "Milliseconds that a call may take.",
        anyOf: [
          { type: "number", exclusiveMinimum: 0 },
          { type: "string", pattern: "^\\s*0*[1-9]\\d*\\s*$" },
          schemas.null,
        ],
      },
      disabled: { description: "Whether it is switched off.", ...orNull({ type: "boolean" }) },
      enabled: { description: "False switches it off.", ...orNull({ type: "boolean" }) },
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
