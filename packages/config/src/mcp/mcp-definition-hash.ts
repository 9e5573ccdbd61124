import { createHash } from "node:crypto";
import { canonicalJson } from "@retinue/base/foundation/canonical-json.ts";

/** Shows whether a server is still the one that was approved: of the whole definition as written, before expansion. */
export function mcpDefinitionHash(written: unknown): string {
  return createHash("sha256").update(canonicalJson(written)).digest("hex");
}
