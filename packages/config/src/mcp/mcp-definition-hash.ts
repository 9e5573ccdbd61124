import { createHash } from "node:crypto";
import { isRecord } from "@retinue/base/foundation/json-record.ts";

/** Shows whether a server is still the one that was approved: of the whole definition as written, before expansion. */
export function mcpDefinitionHash(written: unknown): string {
  return createHash("sha256").update(canonicalJson(written)).digest("hex");
}

/** The same text for the same value, in whatever order keys are. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (!isRecord(value)) return JSON.stringify(value) ?? "null";
  const entries = Object.keys(value)
    .sort()
    .filter((key) => value[key] !== undefined)
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`);
  return `{${entries.join(",")}}`;
}
