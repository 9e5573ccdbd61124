import { execFile } from "node:child_process";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { openSharedCoolDowns } from "./limits/shared-cool-downs.ts";
import { serveAgents } from "./serve-agents.ts";
import { createSessionProgram, type SessionProgramOptions } from "./session/run-session.ts";
import type { ServeOptions, Store, Worker } from "./store.ts";
import { folderNeed } from "./workspace/workspace-plan.ts";

export interface ServeSessionsOptions
  extends Pick<SessionProgramOptions, "runtime" | "workspaces">,
    ServeOptions {
  /** Queues besides the one for everybody. */
  readonly queues?: readonly string[];
  /** Folders that are the same on every worker. */
  readonly folders?: readonly string[];
}

/** Makes this process a worker for sessions. What it has is found out now, so that it takes only what it can run. */
export async function serveSessions(store: Store, options: ServeSessionsOptions): Promise<Worker> {
  const { runtime, workspaces, folders = [], has = [], ...serve } = options;
  const coolDowns = await openSharedCoolDowns(store, serve.onError ?? (() => undefined));
  const program = createSessionProgram({
    runtime,
    store,
    coolDowns,
    ...(workspaces === undefined ? {} : { workspaces }),
  });
  const tools = (runtime.extraTools ?? []).map(({ name }) => `tool:${name}`);
  const servers = Object.keys(runtime.mcpServers ?? {}).map((name) => `mcp:${name}`);
  const shared = folders.map((folder) => folderNeed(resolve(folder)));
  const git = (await hasGit()) ? ["git"] : [];
  return serveAgents(store, program, {
    ...serve,
    machine: hostname(),
    has: [...has, ...tools, ...servers, ...shared, ...git],
  });
}

function hasGit(): Promise<boolean> {
  return promisify(execFile)("git", ["--version"]).then(
    () => true,
    () => false,
  );
}
