import { type JsonSchema, looseWords, schemas } from "@retinue/base/foundation/json-schema.ts";
import { effortLevels } from "@retinue/base/foundation/option-words.ts";

/** Words that people write for true and false. */
export const booleanWords = new Map<unknown, boolean>([
  ...["true", "yes", "on", "1", "y"].map((word): [string, boolean] => [word, true]),
  ...["false", "no", "off", "0", "n"].map((word): [string, boolean] => [word, false]),
]);

const looseFlag = looseWords([...booleanWords.keys()].map(String)).anyOf as readonly JsonSchema[];
const server: JsonSchema = { $ref: "#/definitions/mcpServer" };
const blank: JsonSchema = { type: "string", pattern: "^\\s*$" };

/** What the readers of fields take, in agents and skills. */
export const fieldSchemas = {
  /** The reader takes text that YAML sees as a mapping or a list as it is written. */
  description: { type: ["string", "number", "boolean", "array", "object"], pattern: "\\S" },
  prose: { type: ["string", "number", "boolean", "array", "object"] },
  name: { type: ["string", "number", "boolean"], pattern: "^\\s*[^\\s-]", maxLength: 256 },
  word: { type: ["string", "number", "boolean", "null"] },
  flag: { anyOf: [{ type: "boolean" }, { enum: [0, 1] }, ...looseFlag.slice(1), schemas.null] },
  effort: { anyOf: [{ enum: effortLevels }, { type: "number" }, blank, schemas.null] },
  isolation: { anyOf: [{ enum: ["worktree", "none", false] }, blank, schemas.null] },
  toolList: { anyOf: [{ type: "string" }, { $ref: "#/definitions/toolEntries" }] },
  names: { anyOf: [{ type: "string" }, { $ref: "#/definitions/nameEntries" }, schemas.null] },
  servers: {
    anyOf: [
      { type: "string" },
      { type: "array", items: { anyOf: [{ type: "string" }, { $ref: "#/definitions/namedServers" }] } },
      { $ref: "#/definitions/namedServers" },
      schemas.null,
    ],
  },
  hooks: { $ref: "#/definitions/hooks" },
  limits: { $ref: "#/definitions/limits" },
} as const satisfies Readonly<Record<string, JsonSchema>>;

/** What `fieldSchemas` refers to, besides hooks, limits and servers. */
export const fieldDefinitions: Readonly<Record<string, JsonSchema>> = {
  toolEntries: {
    type: "array",
    items: {
      anyOf: [
        { type: "string" },
        schemas.null,
        { $ref: "#/definitions/toolEntries" },
        // `- Bash(git log: *)` is a mapping to YAML.
        {
          type: "object",
          minProperties: 1,
          maxProperties: 1,
          patternProperties: { "\\([^)]*$": { type: "string" } },
          additionalProperties: false,
        },
      ],
    },
  },
  nameEntries: {
    type: "array",
    items: {
      anyOf: [
        { type: "string" },
        schemas.null,
        { $ref: "#/definitions/nameEntries" },
        { type: "object", properties: { name: { type: ["string", "null"] } }, required: ["name"] },
      ],
    },
  },
  namedServers: {
    anyOf: [
      {
        type: "object",
        properties: {
          serverName: { type: "string", description: "A server that is configured elsewhere." },
          tools: { ...schemas.textList, description: "The tools of it that the agent has." },
        },
        required: ["serverName"],
      },
      {
        type: "object",
        properties: { serverName: { not: { type: "string" } } },
        additionalProperties: { anyOf: [server, schemas.null, { const: true }] },
      },
    ],
  },
};
