import { join } from "node:path";
import { parseJsonDocument } from "../foundation/json-document.ts";
import { isRecord } from "../foundation/json-record.ts";
import { valueAt } from "./edit-json.ts";
import { readBounded } from "./load-settings.ts";
import type { Paths } from "./paths.ts";

/** Where the hashes of approved definitions are kept, outside of every project. */
export function approvalsFile({ configDirectory }: Pick<Paths, "configDirectory">): string {
  return join(configDirectory, "retinue", "mcp-approvals.json");
}

/** The hash of each definition that was approved for this project, by name; "unreadable" where no one can know. */
export async function loadMcpApprovals(
  paths: Pick<Paths, "configDirectory" | "projectRoot">,
): Promise<ReadonlyMap<string, string> | "unreadable"> {
  const file = approvalsFile(paths);
  const content = await readBounded(file);
  if (content.type === "missing") return new Map();
  if (content.type === "unreadable") return "unreadable";
  const { value, diagnostic } = parseJsonDocument(content.text, file);
  if (diagnostic !== undefined || !isRecord(value)) return "unreadable";
  const project = valueAt(value, ["projects", paths.projectRoot]) ?? {};
  if (!isRecord(project)) return "unreadable";
  return new Map(Object.entries(project).map(([name, hash]) => [name, String(hash)]));
}
