import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { loadToken } from "./load-token.ts";

const sources = { environment: {}, cwd: "/", platform: "linux" } as const;

function writeToken(text: string, mode: number): string {
  const folder = mkdtempSync(join(tmpdir(), "retinue-token-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "token");
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
}

test("[MCP-3] without a token given, each start makes another long one", () => {
  const [first, second] = [loadToken(sources), loadToken(sources)];
  expect(first).toEqual({ value: expect.stringMatching(/^[\w-]{43}$/), isNew: true });
  expect(second.value).not.toBe(first.value);
});

test("[MCP-3] a file goes before the environment, and counts without its last line break", () => {
  const environment = { RETINUE_MCP_TOKEN: "token-of-the-environment" };
  const file = writeToken("token-of-the-file\n", 0o600);
  expect(loadToken({ ...sources, environment })).toEqual({ value: "token-of-the-environment", isNew: false });
  expect(loadToken({ ...sources, environment, file })).toEqual({ value: "token-of-the-file", isNew: false });
});

test.each([
  ["a file that others can read", () => ({ file: writeToken("token-of-the-file", 0o644) }), /Other users/],
  ["a file that is not there", () => ({ file: "/no/such/file" }), /cannot be read/],
  ["an empty file", () => ({ file: writeToken("\n", 0o600) }), /cannot be used/],
  ["a short token", () => ({ environment: { RETINUE_MCP_TOKEN: "short" } }), /cannot be used/],
  [
    "a token with spaces",
    () => ({ environment: { RETINUE_MCP_TOKEN: "two words are not a token" } }),
    /cannot be used/,
  ],
])("[MCP-3] %s is refused", (_, changes, message) => {
  expect(() => loadToken({ ...sources, ...changes() })).toThrow(message);
});
