// @io
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import type { SessionFiles } from "./session-files.ts";

/** Whether a process has a child agent of the session open. */
export function hasLiveChild({ subagents }: Pick<SessionFiles, "subagents">): boolean {
  const names = existsSync(subagents) ? readdirSync(subagents) : [];
  return names.some(
    (name) => name.endsWith(".jsonl.lock") && hasLiveOwner(join(subagents, name.slice(0, -".lock".length))),
  );
}
