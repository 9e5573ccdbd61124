/** `npm run schemas`: writes the JSON Schemas of the package, schemas/*.json, from the tables of the readers. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { schemaNames } from "@retinue/base/foundation/json-schema.ts";
import { schemaText } from "@retinue/hosts/commands/schema.ts";

const folder = fileURLToPath(new URL("../schemas", import.meta.url));
mkdirSync(folder, { recursive: true });
for (const name of schemaNames) writeFileSync(join(folder, `${name}.json`), schemaText(name));
console.log(`${schemaNames.length} schemas in schemas.`);
