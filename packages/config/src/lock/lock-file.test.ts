import { expect, test } from "vitest";
import { readLock, writeLock } from "./lock-file.ts";

const hash = `sha256-${"0".repeat(64)}`;
const entry = {
  kind: "agent" as const,
  name: "reviewer",
  file: ".claude/agents/reviewer.md",
  text: hash,
  meaning: hash,
  rights: { tools: ["Read"], mode: "inherit" },
};

test.each([
  ["of the rights", (text: string) => text.replace('"tools": [', '"tools": ["Read"], "tools": [')],
  ["of an entry", (text: string) => text.replace('"kind"', '"name": "reviewer", "kind"')],
  ["of the lock", (text: string) => text.replace('"version"', '"entries": [], "version"')],
  ["spelt with an escape", (text: string) => text.replace('"name"', '"na\\u006de": "x", "name"')],
  [
    "behind a byte order mark",
    (text: string) => `\uFEFF${text.replace('"version"', '"entries": [], "version"')}`,
  ],
])("a key that is written twice, %s, makes the lock unusable [PRT-4]", (_, change) => {
  const text = writeLock([entry]);
  expect(readLock(text, "retinue.lock").entries).toEqual([entry]);
  const { entries, diagnostics } = readLock(change(text), "retinue.lock");
  expect(entries).toBeUndefined();
  expect(diagnostics[0]?.message).toMatch(/^"\w+" is written twice in one object\.$/);
  expect(diagnostics[0]?.line).toBeGreaterThan(0);
});

test("a lock that is nested beyond what can be looked through is unusable [PRT-4]", () => {
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  const text = writeLock([
    { ...entry, rights: { mcpServers: [{ type: "inline", name: "a", config: { a: "DEEP" } }] } },
  ]).replace('"DEEP"', deep);
  expect(readLock(text, "retinue.lock").entries).toBeUndefined();
});
