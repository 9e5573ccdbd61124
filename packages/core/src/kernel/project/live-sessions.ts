// @io
import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { lookAtLock } from "@retinue/base/storage/owner-lock.ts";
import { findSession } from "../../journal/find-sessions.ts";
import { hasLiveChild } from "../../journal/has-live-child.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { projectPaths } from "./create-project.ts";
import type { ProjectOptions } from "./project-facts.ts";

/** A session that a process has open now. */
export interface LiveSession {
  readonly sessionId: string;
  /** The process that has it, and the machine where that is. */
  readonly pid: number;
  readonly machine: string;
  /** The folder it works in; absent before its first message. */
  readonly cwd?: string;
  /** When it was opened, in milliseconds since 1970. */
  readonly startedAt: number;
  readonly status: "idle" | "busy";
  readonly title?: string;
  readonly transcript: string;
}

/** The sessions of all folders that processes have open, the newest first. */
export async function findLiveSessions(
  place: Pick<ProjectOptions, "cwd" | "home" | "env" | "platform">,
): Promise<readonly LiveSession[]> {
  const projects = dirname(projectPaths(place).transcripts);
  const folders = await readdir(projects).catch((): string[] => []);
  const found = await Promise.all(folders.map((name) => liveIn(join(projects, name))));
  return found.flat().toSorted((a, b) => b.startedAt - a.startedAt);
}

const ending = ".jsonl.lock";

async function liveIn(transcripts: string): Promise<readonly LiveSession[]> {
  const names = await readdir(transcripts).catch((): string[] => []);
  const locks = names.filter((name) => name.endsWith(ending));
  const found = await Promise.all(locks.map((name) => readLive(transcripts, basename(name, ending))));
  return found.flatMap((session) => session ?? []);
}

async function readLive(transcripts: string, sessionId: string): Promise<LiveSession | undefined> {
  const transcript = join(transcripts, `${sessionId}.jsonl`);
  const look = lookAtLock(transcript);
  if (look.type === "free" || look.by === undefined) return undefined;
  const { pid, machine } = look.by;
  const [lock, search] = await Promise.all([
    stat(`${transcript}.lock`).catch(() => undefined),
    findSession(transcripts, sessionId),
  ]);
  if (lock === undefined) return undefined;
  const known = search.type === "found" ? search.session : undefined;
  const isIdle = look.isIdle === true && !hasLiveChild(sessionFiles(transcripts, sessionId));
  return {
    sessionId,
    pid,
    machine: machine.split(" ")[0] ?? machine,
    startedAt: Math.round(lock.birthtimeMs),
    status: isIdle ? "idle" : "busy",
    transcript,
    cwd: known?.cwd,
    title: known?.title,
  };
}
