// @io
import { constants, type Stats } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import { withoutByteOrderMark } from "../foundation/parse-json-document.ts";
import {
  largeFileDiagnostic,
  largestInstructionFile,
  unusableFileDiagnostic,
} from "./instruction-diagnostics.ts";

type InstructionText =
  | { readonly type: "missing" }
  | { readonly type: "unusable"; readonly diagnostic: Diagnostic }
  | { readonly type: "text"; readonly text: string; readonly diagnostics: readonly Diagnostic[] };

/** The real path of a file, or why there is none. A folder counts as missing: people mention folders with `@` too. */
export type RealPath =
  | { readonly type: "real"; readonly path: string }
  | Exclude<InstructionText, { type: "text" }>;

export function loadRealPaths(files: readonly string[]): Promise<readonly RealPath[]> {
  return Promise.all(files.map(loadRealPath));
}

export async function loadRealPath(file: string): Promise<RealPath> {
  try {
    return { type: "real", path: await realpath(file) };
  } catch (error) {
    return failure(file, error);
  }
}

/** Reads the beginning of a file whose links were followed, at most as much as instructions may have. */
export async function loadInstructionText(
  file: string,
  accept: (stats: Stats) => Diagnostic | undefined = () => undefined,
): Promise<InstructionText> {
  try {
    const { stats, content } = await loadDecidedBeginning(file, largestInstructionFile + 1);
    if (stats.isDirectory()) return { type: "missing" };
    if (content === undefined)
      return { type: "unusable", diagnostic: unusableFileDiagnostic(file, "no regular file") };
    const refusal = accept(stats);
    return refusal === undefined ? decode(file, content) : { type: "unusable", diagnostic: refusal };
  } catch (error) {
    return failure(file, error);
  }
}

function decode(file: string, bytes: Buffer): InstructionText {
  if (bytes.includes(0)) return { type: "unusable", diagnostic: unusableFileDiagnostic(file, "not a text") };
  if (bytes.length <= largestInstructionFile) {
    return { type: "text", text: withoutByteOrderMark(bytes.toString("utf8")), diagnostics: [] };
  }
  const beginning = cutText(
    withoutByteOrderMark(bytes.toString("utf8")),
    largestInstructionFile,
    `[The rest of ${file} is left out: it is too large.]`,
  );
  return { type: "text", text: beginning, diagnostics: [largeFileDiagnostic(file)] };
}

/** Cuts at the last line break that fits into so many bytes and says so. */
export function cutText(text: string, bytes: number, note: string): string {
  const head = Buffer.from(text, "utf8")
    .subarray(0, bytes)
    .toString("utf8")
    .replace(/\uFFFD+$/, "");
  const lineEnd = head.lastIndexOf("\n");
  return `${lineEnd > 0 ? head.slice(0, lineEnd) : head}\n\n${note}`;
}

function failure(file: string, error: unknown): Exclude<InstructionText, { type: "text" }> {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
  if (["ENOENT", "ENOTDIR", "EISDIR"].includes(code)) return { type: "missing" };
  return { type: "unusable", diagnostic: unusableFileDiagnostic(file, code) };
}

interface Beginning {
  readonly stats: Stats;
  /** Absent for what is no regular file. */
  readonly content: Buffer | undefined;
}

/** The first bytes of a regular file. Rejects as the file system does; a pipe or device is never waited for. */
export async function loadBeginning(file: string, bytes: number): Promise<Beginning> {
  return loadOpened(file, bytes, 0);
}

/**
 * The same for a path whose links were followed before it was decided about: rejects with `EREPLACED` where a link has
 * taken the place of the file or of a folder on the way to it.
 */
export async function loadDecidedBeginning(realFile: string, bytes: number): Promise<Beginning> {
  const beginning = await loadOpened(realFile, bytes, constants.O_NOFOLLOW ?? 0).catch((error: unknown) => {
    throw isLoop(error) ? replaced() : error;
  });
  const [real, now] = await Promise.all([realpath(realFile), stat(realFile)]);
  const { ino, dev } = beginning.stats;
  if (real !== realFile || now.ino !== ino || now.dev !== dev) throw replaced();
  return beginning;
}

function replaced(): Error {
  return Object.assign(new Error("it was replaced while it was read"), { code: "EREPLACED" });
}

function isLoop(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ELOOP";
}

async function loadOpened(file: string, bytes: number, flags: number): Promise<Beginning> {
  // Opening a pipe would otherwise wait until somebody writes to it.
  const handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | flags);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) return { stats, content: undefined };
    const most = Math.min(stats.size + 1, bytes);
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(most), { length: most });
    return { stats, content: buffer.subarray(0, bytesRead) };
  } finally {
    await handle.close();
  }
}
