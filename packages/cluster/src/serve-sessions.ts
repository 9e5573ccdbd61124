// @io
import { homedir, hostname, tmpdir } from "node:os";
import { resolve } from "node:path";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { runOwnGitNow } from "@retinue/gate/git/own-git.ts";
import type { AgentProgram } from "./agent-program.ts";
import { openSharedCoolDowns } from "./limits/shared-cool-downs.ts";
import { probeHost } from "./probe-host.ts";
import { serveAgents, serveShape } from "./serve-agents.ts";
import { createSessionProgram } from "./session/create-session-program.ts";
import { findAbilities } from "./session/find-abilities.ts";
import type { SessionProgramOptions } from "./session/session-work.ts";
import { isStore, type ServeOptions, type Store, type Worker } from "./store.ts";
import { makeWorkspaceRoot } from "./workspace/open-workspace.ts";
import { folderNeed } from "./workspace/workspace-plan.ts";

export interface ServeSessionsOptions
  extends Pick<SessionProgramOptions, "runtime" | "accepts">,
    Omit<ServeOptions, "ailment"> {
  /** Where clones of git workspaces and copies of transcripts go while a session runs; the temporary folder when absent. */
  readonly workspaces?: string | undefined;
  /** Queues besides the one for everybody. */
  readonly queues?: readonly string[] | undefined;
  /** Folders that are the same on every worker. Where there are some, this worker works in no other folder of its disk. */
  readonly folders?: readonly string[] | undefined;
  /** Called with how many sessions run here whenever that changes. */
  readonly onRunning?: ((count: number) => void) | undefined;
}

/** Makes this process a worker for sessions. What it has is found out now, so that it takes only what it can run. */
export async function serveSessions(store: Store, options: ServeSessionsOptions): Promise<Worker> {
  checkArgument("The first argument of serveSessions()", isStore, store);
  checkArgument("The second argument of serveSessions()", serveShape, options);
  checkArgument("The option runtime of serveSessions()", checks.thing, options.runtime);
  const { runtime, workspaces, folders = [], has = [], accepts = [], onRunning, ...serve } = options;
  const coolDowns = await openSharedCoolDowns(store, serve.onError ?? (() => undefined));
  const root = await makeWorkspaceRoot(workspaces);
  const program = whileCounting(
    createSessionProgram({ runtime, store, coolDowns, workspaces: root.folder, folders, accepts }),
    onRunning ?? (() => undefined),
  );
  const abilities = await findAbilities(runtime);
  const shared = folders.map((folder) => folderNeed(resolve(folder)));
  const git = hasGit({ PATH: process.env["PATH"], ...runtime.env }) ? ["git"] : [];
  const worker = await serveAgents(store, program, {
    ...serve,
    machine: hostname(),
    probe: (error) => probeHost({ folder: root.folder, home: runtime.home ?? homedir() }, error),
    has: [...has, ...abilities, ...shared, ...git],
  });
  const drain = async (graceMs?: number): Promise<void> => {
    await worker.drain(graceMs);
    await coolDowns[Symbol.asyncDispose]();
    await root.remove();
  };
  return { id: worker.id, drain, [Symbol.asyncDispose]: () => drain() };
}

function whileCounting(program: AgentProgram, onRunning: (count: number) => void): AgentProgram {
  let running = 0;
  const change = (by: number): void => {
    running += by;
    onRunning(running);
  };
  return async (context) => {
    change(1);
    try {
      return await program(context);
    } finally {
      change(-1);
    }
  };
}

function hasGit(environment: Readonly<Record<string, string | undefined>>): boolean {
  return runOwnGitNow({ directory: tmpdir(), words: ["--version"], environment, folders: [] }) !== undefined;
}
