import { basename } from "node:path";
import { type SchemaName, schemaAddress } from "@retinue/base/foundation/json-schema.ts";

/** What a JSON file that people edit begins with when it is made here: the address of its schema, for editors. */
export function emptyJsonFile(file: string): string {
  const name = schemaOfFile(basename(file));
  return name === undefined ? "{}\n" : `${JSON.stringify({ $schema: schemaAddress(name) }, undefined, 2)}\n`;
}

function schemaOfFile(name: string): SchemaName | undefined {
  if (name === ".mcp.json") return "mcp";
  return /^settings(?:\.local)?\.json$/.test(name) ? "settings" : undefined;
}
