// Checks a folder of agents as `retinue agents check` does, for a build or an editor. Ends with 1 when there is an error.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Diagnostic } from "retinue";
import { lintDefinition, parseAgentDefinition } from "retinue/definitions";

const folder = fileURLToPath(new URL("awkward/", import.meta.url));

function check(file: string): readonly Diagnostic[] {
  const text = readFileSync(`${folder}${file}`, "utf8");
  const { definition, diagnostics } = parseAgentDefinition(text, { file });
  return definition === undefined ? diagnostics : [...diagnostics, ...lintDefinition(definition, { text })];
}

const diagnostics = readdirSync(folder).sort().flatMap(check);
for (const { file, line = 1, severity, code } of diagnostics) {
  console.log(`${file}:${line}`.padEnd(26), severity.padEnd(8), code);
}

const errors = diagnostics.filter(({ severity }) => severity === "error").length;
console.log(`${errors} errors, ${diagnostics.length - errors} other problems`);
process.exitCode = errors > 0 ? 1 : 0;
