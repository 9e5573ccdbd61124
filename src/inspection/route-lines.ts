import type { JsonRecord } from "../foundation/json-value.ts";
import { isAgentId } from "../journal/session-files.ts";
import { textField } from "./read-line.ts";

/**
 * Tells to which agent a line of a main transcript belongs: older programs have written children into it, some without
 * naming them, and those are told apart by the line their conversation begins with.
 */
export function createRouter(main: string): (record: JsonRecord) => string {
  const roots = new Map<string, string>();
  return (record) => {
    if (record.isSidechain !== true) return main;
    const named = textField(record, "agentId");
    if (named !== undefined && isAgentId(named) && named !== main) return named;
    const uuid = textField(record, "uuid") ?? "";
    const root = roots.get(textField(record, "parentUuid") ?? "") ?? sidechainName(uuid);
    roots.set(uuid, root);
    return root;
  };
}

function sidechainName(uuid: string): string {
  return `sidechain-${uuid.replace(/[^A-Za-z0-9]/g, "").slice(0, 8)}`;
}
