import { basename, relative, resolve } from "node:path";
import { findLiveSessions } from "@retinue/core/kernel/project/live-sessions.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { openBackground } from "../background/find-background.ts";

/**
 * `retinue agents --json`: the sessions that processes have open now, those in the background with their agents, as a list. `--cwd`
 * keeps those below a folder, `--all` adds those in the background that have ended.
 */
export async function agentsLive(
  { host }: CommandContext,
  options: { readonly cwd?: string; readonly all?: boolean },
): Promise<number> {
  const { environment: env, cwd, home, platform } = host;
  const [live, all] = await Promise.all([
    findLiveSessions({ cwd, home, env, platform }),
    openBackground(host).list(),
  ]);
  const below = options.cwd === undefined ? undefined : resolve(cwd, options.cwd);
  const inBackground = all.filter(({ isRunning }) => isRunning || options.all === true);
  const ids = new Set(inBackground.map(({ sessionId }) => sessionId));
  const shown = [
    ...inBackground.map((session) => ({
      ...(session.isRunning ? { pid: session.process.pid } : {}),
      id: session.id,
      cwd: session.workingFolder,
      kind: "background",
      startedAt: session.startedAt,
      sessionId: session.sessionId,
      name: session.name,
      status: statusOf(session),
      state: session.state,
      waitingForQuota: session.waitingForQuota,
      transcript: session.transcript,
      agents: session.agents.map(({ id, agentType, description, state, name }) => ({
        id,
        agentType,
        description,
        state,
        name,
      })),
    })),
    ...live
      .filter(({ sessionId }) => !ids.has(sessionId))
      .map(({ title, cwd: folder, ...session }) => ({
        ...session,
        id: session.sessionId.slice(0, 8),
        cwd: folder,
        kind: "interactive",
        name: title ?? basename(folder ?? session.sessionId),
      })),
  ].filter((session) => below === undefined || isBelow(below, session.cwd));
  host.stdout.write(`${JSON.stringify(shown, undefined, 2)}\n`);
  return 0;
}

function statusOf({ state, isRunning }: { readonly state: string; readonly isRunning: boolean }): string {
  if (!isRunning) return "idle";
  return state.startsWith("waiting") ? "waiting" : "busy";
}

function isBelow(folder: string, cwd: string | undefined): boolean {
  return cwd !== undefined && !relative(folder, cwd).startsWith("..");
}
