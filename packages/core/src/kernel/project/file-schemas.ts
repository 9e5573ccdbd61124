/** The JSON Schemas of the files that projects have, for hosts. */
export { type FileSchema, fileSchemas, schemaDocument } from "@retinue/config/schemas/file-schemas.ts";
