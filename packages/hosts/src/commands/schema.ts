import { quote } from "@retinue/base/foundation/json-record.ts";
import { type SchemaName, schemaNames } from "@retinue/base/foundation/json-schema.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { type FileSchema, fileSchemas, schemaDocument } from "@retinue/core/kernel/project/file-schemas.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { misuse } from "../shared/misuse.ts";
import { evalFields } from "./eval/read-eval-file.ts";

const table: Readonly<Record<SchemaName, FileSchema>> = {
  ...fileSchemas,
  eval: {
    files: "the file of retinue eval",
    schema: () => ({
      type: "object",
      properties: evalFields,
      required: ["tasks"],
      additionalProperties: false,
    }),
  },
};

/** The text of a schema, as the command prints it and the package has it. */
export function schemaText(name: SchemaName): string {
  return `${JSON.stringify(schemaDocument(name, table[name]), undefined, 2)}\n`;
}

/** `retinue schema NAME`: prints a JSON Schema; without a name, the names there are. */
export async function schema({ host }: CommandContext, name: string | undefined): Promise<number> {
  if (name === undefined) {
    for (const each of schemaNames) host.stdout.write(`${each.padEnd(10)}${table[each].files}\n`);
    return 0;
  }
  const known = schemaNames.find((each) => each === name);
  if (known === undefined) {
    const nearest = nearestName(name, schemaNames);
    throw misuse(
      `There is no schema ${quote(name)}.`,
      nearest === undefined ? `Write one of ${schemaNames.join(", ")}.` : `Did you mean ${nearest}?`,
    );
  }
  host.stdout.write(schemaText(known));
  return 0;
}
