import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";
import { readMcpServers } from "@retinue/config/mcp/mcp-server-config.ts";
import { type CorpusEntry, compareFields, type Mismatch } from "./corpus-manifest.ts";

/** Compares an MCP file by its servers: how each is reached, and whether it could be used at all. */
export function compareMcp(entry: CorpusEntry, text: string): Mismatch[] {
  const { value, diagnostic } = parseJsonDocument(text, entry.file);
  if (diagnostic !== undefined) {
    const kind = /\((\w+)\)\.$/.exec(diagnostic.message)?.[1];
    return compareFields(entry.expect, { loads: false, error: kind, line: diagnostic.line });
  }
  const { servers } = readMcpServers(value);
  return compareFields(entry.expect, {
    loads: servers !== undefined,
    servers: servers?.map(({ name, kind, transport }) => ({
      name,
      transport: kind ?? null,
      usable: transport !== undefined,
    })),
  });
}
