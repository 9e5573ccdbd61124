import { basename, relative, resolve } from "node:path";
import { findLiveSessions } from "@retinue/core/kernel/project/live-sessions.ts";
import type { CommandContext } from "../../shared/command-context.ts";

/** `retinue agents --json`: the sessions that processes have open now, as a list; `--cwd` keeps those below a folder. */
export async function agentsLive(
  { host }: CommandContext,
  options: { readonly cwd?: string },
): Promise<number> {
  const { environment: env, cwd, home, platform } = host;
  const found = await findLiveSessions({ cwd, home, env, platform });
  const below = options.cwd === undefined ? undefined : resolve(cwd, options.cwd);
  const shown = found
    .filter((session) => below === undefined || isBelow(below, session.cwd))
    .map(({ title, cwd: folder, ...session }) => ({
      ...session,
      ...(folder === undefined ? {} : { cwd: folder }),
      // Nothing runs detached here: whoever started it has it open.
      kind: "interactive",
      name: title ?? basename(folder ?? session.sessionId),
    }));
  host.stdout.write(`${JSON.stringify(shown, undefined, 2)}\n`);
  return 0;
}

function isBelow(folder: string, cwd: string | undefined): boolean {
  return cwd !== undefined && !relative(folder, cwd).startsWith("..");
}
