/** `npm run docs:api`: writes the reference of the library, docs/api, and the tables of flags and of fields in docs/command-line.md and docs/definitions.md. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { apiReference } from "./api-reference.ts";
import { withFieldTable, withOptionTables } from "./option-tables.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const pages = apiReference((path) => readFileSync(join(root, path), "utf8"));
mkdirSync(join(root, "docs/api"), { recursive: true });
for (const name of readdirSync(join(root, "docs/api")))
  if (!pages.has(`docs/api/${name}`)) rmSync(join(root, "docs/api", name));
for (const [path, text] of pages) writeFileSync(join(root, path), text);
for (const [page, withTables] of [
  ["docs/command-line.md", withOptionTables],
  ["docs/definitions.md", withFieldTable],
] as const)
  writeFileSync(join(root, page), withTables(readFileSync(join(root, page), "utf8")));
console.log(`${pages.size} pages in docs/api.`);
