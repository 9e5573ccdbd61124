// Reads one definition that is not quite valid YAML, and shows what was understood and what was repaired.
import { parseAgentDefinition } from "retinue/definitions";

const text = `---
name: changelog-writer
description: Writes the changelog: one line per change. Use when a version is cut. Not for commit messages.
tools: Read, Edit(CHANGELOG.md), Bash(git log *)
max_turns: 12
---

Group the changes by what they mean to users.
`;

const { definition, diagnostics } = parseAgentDefinition(text, { file: "changelog-writer.md" });

console.log(definition?.name, definition?.tools, definition?.maxTurns);
for (const { severity, file, line, column, message, advice } of diagnostics) {
  console.log(`${file}:${line}:${column} ${severity}: ${message}`);
  if (advice !== undefined) console.log(`  ${advice}`);
}
