import { join } from "node:path";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { readMcpServers } from "../mcp/mcp-server-config.ts";
import { changeJson, valueAt, type WriteOutcome } from "./approve-mcp-servers.ts";
import type { Paths } from "./paths.ts";
import { staysInside } from "./write-local-rules.ts";

/** Where `retinue mcp add` can write: one person in one project, everyone in the project, one person everywhere. */
export const writableScopes = ["local", "project", "user"] as const;
export type WritableScope = (typeof writableScopes)[number];

export type ServerPaths = Pick<Paths, "cwd" | "projectRoot" | "stateFile">;

export interface ServerAddition {
  readonly scope: WritableScope;
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Adds a server; one of the same name in the same place is an error unless it is to be replaced. */
export async function addMcpServer(
  paths: ServerPaths,
  { scope, name, config }: ServerAddition,
  { replaces = false }: { readonly replaces?: boolean } = {},
): Promise<WriteOutcome | { readonly type: "exists"; readonly file: string }> {
  const file = fileOf(scope, paths);
  if (scope === "project" && !(await staysInside(file, paths.projectRoot)))
    return { type: "refused", file, why: `${file} is a link that leads out of the project` };
  let isTaken = false;
  const outcome = await changeJson(file, (value) => {
    const path = [...keysOf(scope, paths, value), name];
    isTaken = valueAt(value, path) !== undefined && !replaces;
    return isTaken ? [] : [{ path, value: config }];
  });
  return isTaken ? { type: "exists", file } : outcome;
}

/** Removes a server from one place; `absent` where it is not there. */
export async function removeMcpServer(
  paths: ServerPaths,
  { scope, name }: Pick<ServerAddition, "scope" | "name">,
): Promise<WriteOutcome | { readonly type: "absent"; readonly file: string }> {
  const file = fileOf(scope, paths);
  if (scope === "project" && !(await staysInside(file, paths.projectRoot)))
    return { type: "refused", file, why: `${file} is a link that leads out of the project` };
  let isThere = false;
  const outcome = await changeJson(file, (value) => {
    const path = [...keysOf(scope, paths, value), name];
    isThere = valueAt(value, path) !== undefined;
    return isThere ? [{ path, value: undefined }] : [];
  });
  return isThere || outcome.type === "refused" ? outcome : { type: "absent", file };
}

function fileOf(scope: WritableScope, { projectRoot, stateFile }: ServerPaths): string {
  return scope === "project" ? join(projectRoot, ".mcp.json") : stateFile;
}

/** A project file may hold the servers without the outer key, as people paste them; it stays in that form. */
function keysOf(scope: WritableScope, { projectRoot }: ServerPaths, value: unknown): readonly string[] {
  if (scope === "local") return ["projects", projectRoot, "mcpServers"];
  if (scope === "user") return ["mcpServers"];
  const { servers = [] } = readMcpServers(value);
  const at = servers[0]?.path.slice(0, -1) ?? ["mcpServers"];
  return isRecord(value) ? at.map(String) : ["mcpServers"];
}
