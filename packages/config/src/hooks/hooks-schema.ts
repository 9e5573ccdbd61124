import { type JsonSchema, orNull, schemas } from "@retinue/base/foundation/json-schema.ts";
import { hookEventNames, hookEvents, isFiredEvent } from "./hook-input.ts";
import { hookHandlerDefinitions } from "./read-hook-handler.ts";
import { hooksFileKeys } from "./read-hooks.ts";

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
    const description = `Hooks for ${name}. ${isFiredEvent(name) ? subject : "This event does not happen here."}`;
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
