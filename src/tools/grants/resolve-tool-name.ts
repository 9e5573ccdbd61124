import { nearestName } from "../../foundation/nearest-name.ts";
import { absentToolNames, toolAliases } from "../../foundation/tool-table.ts";
import { builtinTools } from "./builtin-tools.ts";

/** What the name of a tool in somebody's file means here. */
export type ToolNameMeaning =
  | { readonly type: "known"; readonly name: string }
  | { readonly type: "renamed"; readonly name: string; readonly reason: "old-name" | "letter-case" }
  /** Known elsewhere, but this product has no such tool. */
  | { readonly type: "absent" }
  /** Without a server: every server. Without a tool: every tool of the server. */
  | { readonly type: "mcp"; readonly server?: string; readonly tool?: string }
  | { readonly type: "unknown"; readonly nearest?: string };

export function resolveToolName(name: string): ToolNameMeaning {
  if (builtinNames.has(name)) return { type: "known", name };
  if (name.startsWith("mcp__")) return readMcpName(name);
  const today = toolAliases.get(name);
  if (today !== undefined) return fromOldName(today);
  if (absentToolNames.has(name)) return { type: "absent" };
  return resolveLetterCase(name);
}

/** Every name a person could have meant, for suggestions. */
export function knownToolNames(): readonly string[] {
  return [...builtinNames];
}

function resolveLetterCase(name: string): ToolNameMeaning {
  const lower = name.toLowerCase();
  const known = byLowerCase.get(lower);
  if (known !== undefined) return { type: "renamed", name: known, reason: "letter-case" };
  const today = renamedByLowerCase.get(lower);
  if (today !== undefined) return fromOldName(today);
  const nearest = nearestName(name, builtinNames);
  return { type: "unknown", ...(nearest === undefined ? {} : { nearest }) };
}

/** Some tools were renamed that this product does not have under any name. */
function fromOldName(today: string): ToolNameMeaning {
  return builtinNames.has(today) ? { type: "renamed", name: today, reason: "old-name" } : { type: "absent" };
}

/** A server's name ends at the first double underscore, as it does when the tool names are made. */
function readMcpName(name: string): ToolNameMeaning {
  const rest = name.slice("mcp__".length);
  const end = rest.indexOf("__");
  const server = end === -1 ? rest : rest.slice(0, end);
  const tool = end === -1 ? "" : rest.slice(end + 2);
  if (server === "") return { type: "unknown" };
  return {
    type: "mcp",
    ...(server === "*" ? {} : { server }),
    ...(tool === "" || tool === "*" ? {} : { tool }),
  };
}

const builtinNames: ReadonlySet<string> = new Set(builtinTools.map((tool) => tool.name));
const byLowerCase: ReadonlyMap<string, string> = new Map(
  builtinTools.map((tool) => [tool.name.toLowerCase(), tool.name]),
);
const renamedByLowerCase: ReadonlyMap<string, string> = new Map(
  [...toolAliases].map(([old, today]) => [old.toLowerCase(), today]),
);
