import { builtinTools } from "@retinue/config/tools/builtin-tools.ts";
import { expect, test } from "vitest";
import { createShells } from "../command/shells.ts";
import { specificationsOf } from "../json-schema-of.ts";
import { createBuiltinTools } from "./create-builtin-tools.ts";
import { createShellDirectories } from "./shell-directories.ts";

const now = () => 0;
const tools = createBuiltinTools({
  shells: createShells({ newId: () => "00000000", now }),
  directories: createShellDirectories(),
  now,
});

test("the built-in tools are in the order of their names, each once", () => {
  const names = tools.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)].sort());
});

test("each has the effect that the list of built-in tools says", () => {
  const effects = new Map<string, string>(builtinTools.map(({ name, effect }) => [name, effect]));
  expect(tools.map(({ name, effect }) => [name, effect])).toEqual(
    tools.map(({ name }) => [name, effects.get(name)]),
  );
  expect(tools.every(({ origin }) => origin === "builtin")).toBe(true);
});

test("a model sees an object with described fields for each", () => {
  for (const { name, description, inputSchema } of specificationsOf(tools)) {
    expect(inputSchema, name).toMatchObject({ type: "object", properties: expect.any(Object) });
    expect(description.length, name).toBeGreaterThan(40);
  }
  const bash = specificationsOf(tools).find(({ name }) => name === "Bash");
  expect(bash?.inputSchema).toMatchObject({
    required: ["command"],
    properties: { timeout: { type: "number" }, run_in_background: { type: "boolean" } },
  });
});
