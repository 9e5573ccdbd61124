import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import {
  type BackgroundSession,
  type BackgroundSessions,
  openBackgroundSessions,
} from "@retinue/core/kernel/project/background-sessions.ts";
import type { CliHost } from "../../shared/cli-host.ts";
import { pathsOf } from "../../shared/find-named-task.ts";

/** The sessions in the background of this user. */
export function openBackground(host: CliHost): BackgroundSessions {
  return openBackgroundSessions(pathsOf(host));
}

/** One of them, by id, the beginning of it, or name. */
export async function findBackground(host: CliHost, written: string): Promise<BackgroundSession> {
  const found = await openBackground(host).find(written);
  if (found !== undefined) return found;
  throw new RetinueError(
    "unknown-session",
    `There is no session ${JSON.stringify(written)} in the background.`,
    { advice: '`retinue agents --json --all` lists those there are; `retinue --bg "prompt"` starts one.' },
  );
}
