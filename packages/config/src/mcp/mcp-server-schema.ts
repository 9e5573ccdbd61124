import { type JsonSchema, looseWords, orNull, schemas } from "@retinue/base/foundation/json-schema.ts";
import { serverKeys } from "./mcp-server-config.ts";
import type { McpKind } from "./mcp-transport.ts";
import { transportWords } from "./read-transport.ts";

const scalar = { type: ["string", "number", "boolean"] };
const word = schemas.text;
const addressKeys = ["url", "serverUrl", "httpUrl"] as const;

/** A server that can be used, and one that lives in a program. */
export function mcpServerSchema(): JsonSchema {
  const address = { type: "string", pattern: "\\$\\{|^\\s*[hH][tT][tT][pP][sS]?:" };
  const isProgram = { required: ["command"] };
  const isAddress = { anyOf: addressKeys.map((key) => ({ required: [key] })) };
  return {
    type: "object",
    properties: {
      type: { description: "How it is reached; without it, by command or url.", ...orNull(offered) },
      command: {
        description: "The program that is started.",
        anyOf: [word, { type: "array", items: [word], additionalItems: { type: "string" }, minItems: 1 }],
      },
      args: {
        description: "Its arguments.",
        anyOf: [{ type: "array", items: scalar }, { type: "string" }, schemas.null],
      },
      env: { description: "Its variables; variables in it are replaced.", ...textsSchema },
      cwd: { description: "The folder it is started in." },
      url: { description: "Its address, http or https; variables in it are replaced.", ...address },
      serverUrl: { description: "As url.", ...address },
      httpUrl: { description: "As url.", ...address },
      headers: { description: "Headers of each request; variables in it are replaced.", ...textsSchema },
      headersHelper: { description: "A command that prints more headers as JSON." },
      timeout: {
        description: "Milliseconds that a call may take.",
        anyOf: [
          { type: "number", exclusiveMinimum: 0 },
          { type: "string", pattern: "^\\s*\\d+\\s*$" },
          schemas.null,
        ],
      },
      disabled: { description: "Whether it is switched off.", ...orNull({ type: "boolean" }) },
      enabled: { description: "False switches it off.", ...orNull({ type: "boolean" }) },
      alwaysLoad: { description: "Its tools are always in the prompt.", ...orNull({ type: "boolean" }) },
    },
    anyOf: [
      { allOf: [hasKind("stdio"), isProgram] },
      { allOf: [{ anyOf: [hasKind("http"), hasKind("sse")] }, isAddress] },
      { allOf: [noKind, { anyOf: [isProgram, isAddress] }] },
      hasKind("sdk"),
    ],
  };
}

const textsSchema = orNull({ type: "object", additionalProperties: scalar });

const offered: JsonSchema = { anyOf: [{ enum: ["stdio", "http", "sse"] }, { type: ["string", "number"] }] };

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
