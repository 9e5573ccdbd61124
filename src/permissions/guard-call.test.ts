import { expect, test } from "vitest";
import { decide, type PermissionPolicy, type PermissionRequest } from "./decide.ts";

const open: PermissionPolicy = {
  mode: "bypassPermissions",
  allow: [],
  ask: [],
  deny: [],
  workingDirectories: ["/p"],
  home: "/h",
};

function withDeny(deny: string): PermissionPolicy {
  return { ...open, toolScopes: [{ anchor: "/p", tools: [{ name: "Read", deny: [deny] }] }] };
}

const read = (path: string): PermissionRequest => ({
  tool: "Read",
  effect: "read",
  paths: [path],
  input: {},
});

test.each([
  ["*", "/p/deep/a.ts", "deny"],
  ["**", "/etc/passwd", "deny"],
  [".env", "/p/sub/.env", "deny"],
  [".env", "/p/a.ts", "allow"],
])("[TLS-3] a definition that excludes Read(%s) decides about %s: %s", (deny, path, expected) => {
  expect(decide(read(path), withDeny(deny)).type).toBe(expected);
});

test("[TLS-3] a tool that the definition does not have is refused, whatever the mode", () => {
  const policy = { ...open, toolScopes: [{ anchor: "/p", tools: [{ name: "Grep" }] }] };
  expect(decide(read("/p/a.ts"), policy).type).toBe("deny");
});
