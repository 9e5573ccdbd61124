import { expect, test } from "vitest";
import { repeatsOf } from "./json-schema-of.ts";
import type { Tool } from "./tool.ts";

const mcp = (hints: NonNullable<Tool["mcp"]>["hints"]) => ({
  server: "s",
  tool: "t",
  serverName: "s",
  source: "user",
  hints,
});

test.each([
  [{ effect: "read", origin: "builtin" }, "pure"],
  [{ effect: "network", origin: "builtin" }, "pure"],
  [{ effect: "network", origin: "program" }, "unsafe"],
  [{ effect: "edit", origin: "builtin" }, "unsafe"],
  [{ effect: "execute", origin: "builtin" }, "unsafe"],
  [{ effect: "spawn", origin: "builtin" }, "unsafe"],
  [{ effect: "edit", origin: "builtin", repeats: "idempotent" }, "idempotent"],
  [{ effect: "read", origin: "program", repeats: "unsafe" }, "unsafe"],
  [{ effect: "read", origin: "mcp", mcp: mcp({ readOnly: true }) }, "pure"],
  [{ effect: "execute", origin: "mcp", mcp: mcp({ idempotent: true }) }, "idempotent"],
  [{ effect: "execute", origin: "mcp", mcp: mcp({}) }, "unsafe"],
] as const)("[TRN-3] %j is %s when it is repeated", (tool, repeats) => {
  expect(repeatsOf(tool)).toBe(repeats);
});
