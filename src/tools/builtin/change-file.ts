import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { refuseBase } from "../add-seen-lines.ts";
import { findRealPath } from "../find-real-path.ts";
import type { ToolContext, ToolOutcome } from "../tool.ts";
import { writeAtomically } from "../write-atomically.ts";
import { failed, fileTrouble } from "./builtin-tool.ts";
import { locateDecided } from "./locate.ts";
import { digestOf, fingerprintOf, loadBytes, maxLoadedBytes, openFile } from "./open-file.ts";

/** What is in the file now; `bytes` are absent when it is too large to be held. */
export interface CurrentFile {
  readonly bytes?: Buffer;
  readonly digest: string;
  readonly stats: Stats;
}

export type ChangeDecision =
  | { readonly type: "write"; readonly bytes: Buffer; readonly outcome: ToolOutcome }
  | { readonly type: "refused"; readonly reason: string };

export interface FileChangeRequest {
  readonly given: string;
  /** Whether all of the file is replaced, so that all of it must have been seen. */
  readonly whole: boolean;
  /** Decides on what is there now (undefined: no file); given the absolute path. Does no I/O. */
  readonly decide: (current: CurrentFile | undefined, path: string) => ChangeDecision;
}

/** The one way files are changed: one change at a time for each file, only on a base that was seen, in one step. */
export async function changeFile(request: FileChangeRequest, context: ToolContext): Promise<ToolOutcome> {
  const located = await locateDecided(request.given, context);
  if (located.type === "refused") return failed(located.reason);
  const { path, realPath } = located;
  const { signal, writeInTurn } = context;
  const alone = () => changeLocated(request, { path, realPath }, context);
  const change = () => writeInTurn?.(realPath, signal, alone) ?? alone();
  try {
    return await (context.files.exclusively?.(realPath, signal, change) ?? change());
  } catch (error) {
    signal.throwIfAborted();
    return failed(fileTrouble(error, path));
  }
}

interface Place {
  readonly path: string;
  readonly realPath: string;
}

async function changeLocated(
  { whole, decide }: FileChangeRequest,
  { path, realPath }: Place,
  context: ToolContext,
): Promise<ToolOutcome> {
  const current = await loadCurrent(realPath);
  if (current?.type === "refused") return failed(current.reason);
  const file = current?.file;
  if (file !== undefined) {
    const { agent, files: ledger } = context;
    const reason = refuseBase({ path, realPath, digest: file.digest, ledger, agentId: agent.id, whole });
    if (reason !== undefined) return failed(reason);
  }
  const decision = decide(file, path);
  if (decision.type === "refused") return failed(decision.reason);
  context.signal.throwIfAborted();
  const written = await writeAtomically(realPath, decision.bytes, {
    ...(file === undefined ? {} : { mode: file.stats.mode }),
    noteTemporary: context.noteTemporary,
    stillWanted: async () =>
      (await findRealPath(realPath)) === realPath &&
      (await loadCurrent(realPath))?.file?.digest === file?.digest,
  });
  if (!written) {
    return failed(
      `${path} was changed by another program at the same moment. Read it again and repeat the change.`,
    );
  }
  await noteWritten(realPath, decision.bytes, context);
  return decision.outcome;
}

async function noteWritten(realPath: string, bytes: Buffer, { agent, files }: ToolContext): Promise<void> {
  const stats = await stat(realPath);
  const digest = bytes.length > maxLoadedBytes ? fingerprintOf(stats) : digestOf(bytes);
  // Lines that were seen before may have moved, so only whether all of it is known is kept.
  files.noteSeen(realPath, {
    digest,
    mtimeMs: stats.mtimeMs,
    partial: files.seen(realPath)?.partial ?? false,
  });
  files.noteChange(realPath, { agent, digest });
}

type Loaded =
  | { readonly type: "loaded"; readonly file: CurrentFile }
  | { readonly type: "refused"; readonly reason: string; readonly file?: undefined };

async function loadCurrent(path: string): Promise<Loaded | undefined> {
  const opened = await openFile(path);
  switch (opened.type) {
    case "missing":
      return undefined;
    case "folder":
      return { type: "refused", reason: `${path} is a folder, not a file.` };
    case "refused":
      return opened;
    case "file": {
      await using handle = opened.handle;
      const { stats } = opened;
      const file = (await loadBytes(handle, stats)) ?? { digest: fingerprintOf(stats), stats };
      return { type: "loaded", file };
    }
  }
}
