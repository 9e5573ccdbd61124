import type { StandardSchemaV1 } from "@modelcontextprotocol/client";

/** Takes every result as it came: one flaw in a server's answer must cost that part, not all of it. */
export const anything: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "retinue", validate: (value) => ({ value }) },
};
