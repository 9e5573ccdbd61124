// @io
import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileError } from "@retinue/base/foundation/file-error.ts";
import type { SessionFiles } from "./session-files.ts";

/** What a person did to a session from outside the process that runs it. */
export interface Act {
  readonly action: string;
  /** `main`, or the id of a child. */
  readonly agentId: string;
  readonly text?: string;
  readonly state: "requested" | "done" | "failed";
  /** Why it failed, or its outcome. */
  readonly reason?: string;
  /** Who did it, and through which program. */
  readonly by: { readonly user: string; readonly through: string; readonly pid: number };
}

export function actFile({ directory }: Pick<SessionFiles, "directory">): string {
  return join(directory, "acts.jsonl");
}

/** Adds one line; several processes may add to the same file. */
export function appendAct(files: Pick<SessionFiles, "directory">, act: Act, now: number): void {
  const file = actFile(files);
  const line = { type: "retinue-act", timestamp: new Date(now).toISOString(), ...act };
  try {
    mkdirSync(files.directory, { recursive: true, mode: 0o700 });
    appendFileSync(file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
  } catch (error) {
    throw fileError("write", file, error);
  }
}
