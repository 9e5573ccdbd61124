import type { Stats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { TextDecoder } from "node:util";
import { addSeenLines } from "../add-seen-lines.ts";
import { decodeText, looksBinary, shapeOf } from "../decode-text.ts";
import { createLineWindow, type LineRange, numberLines, type ShownLines } from "../line-window.ts";
import type { ToolContext, ToolOutcome } from "../tool.ts";
import { failed } from "./builtin-tool.ts";
import { fingerprintOf, type LoadedFile } from "./open-file.ts";

export interface ReadRequest {
  readonly path: string;
  readonly realPath: string;
  readonly context: ToolContext;
  readonly range: LineRange;
}

export function readText(request: ReadRequest, { bytes, digest, stats }: LoadedFile): ToolOutcome {
  if (looksBinary(bytes)) return refuseBinary(request.path, stats);
  const decoded = decodeText(bytes);
  const window = createLineWindow(request.range);
  window.take(decoded.text);
  const shown = window.finish();
  const { files } = request.context;
  files.noteSeen(
    request.realPath,
    addSeenLines(
      files.seen(request.realPath),
      { digest, mtimeMs: stats.mtimeMs },
      { first: shown.start, last: shown.start + shown.lines.length - 1, total: shown.total },
    ),
  );
  const notes = [
    ...(decoded.exact ? [] : [`Some bytes are not valid ${decoded.encoding} and are shown as \ufffd.`]),
    ...(decoded.encoding === "utf-8" ? [] : [`The file is ${decoded.encoding}; Edit keeps that.`]),
  ];
  return showText(request, shown, { notes, whole: true });
}

/** Reads only as far as the wanted lines; the rest of the file is not looked at. */
export async function readHugeText(
  request: ReadRequest,
  handle: FileHandle,
  stats: Stats,
): Promise<ToolOutcome> {
  const buffer = Buffer.alloc(chunkBytes);
  const window = createLineWindow(request.range);
  let decoder: TextDecoder | undefined;
  let position = 0;
  while (!window.full && position < maxScannedBytes) {
    request.context.signal.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position);
    const bytes = buffer.subarray(0, bytesRead);
    if (decoder === undefined) {
      if (looksBinary(bytes)) return refuseBinary(request.path, stats);
      decoder = new TextDecoder(shapeOf(bytes).encoding);
    }
    position += bytesRead;
    if (bytesRead === 0) break;
    window.take(decoder.decode(bytes, { stream: true }));
  }
  const shown = window.finish();
  if (shown.lines.length === 0 && position >= maxScannedBytes) {
    return failed(
      `Line ${shown.start} of ${request.path} lies behind the first ${megabytes(maxScannedBytes)}; use Grep to find the place, or a shell command to cut it out.`,
    );
  }
  request.context.files.noteSeen(request.realPath, {
    digest: fingerprintOf(stats),
    mtimeMs: stats.mtimeMs,
    partial: true,
  });
  const notes = [
    `The file has ${megabytes(stats.size)} and was read only this far; Grep searches all of it.`,
  ];
  return showText(request, shown, { notes, whole: position >= stats.size });
}

function showText(
  { path, range }: ReadRequest,
  shown: ShownLines,
  { notes, whole }: { readonly notes: readonly string[]; readonly whole: boolean },
): ToolOutcome {
  const file = {
    filePath: path,
    content: shown.lines.join("\n"),
    numLines: shown.lines.length,
    startLine: shown.start,
    totalLines: shown.total,
  };
  const data = { type: "text", file };
  if (shown.total === 0) return { content: `${path} is empty.`, data };
  if (shown.lines.length === 0) {
    return {
      content: `${path} has ${shown.total} lines; there is nothing from line ${shown.start} on.`,
      data,
    };
  }
  const remarks = [...describeRange(shown, range, whole), ...notes];
  const text = numberLines(shown);
  return { content: remarks.length === 0 ? text : `${text}\n\n[${remarks.join(" ")}]`, data };
}

export function describeRange(shown: ShownLines, range: LineRange, whole: boolean): string[] {
  const last = shown.start + shown.lines.length - 1;
  const more = !whole || last < shown.total;
  if (!more && shown.start === 1) return [];
  const total = whole ? ` of ${shown.total}` : "";
  const why =
    more && shown.lines.length < range.count
      ? ", as many as fit into one answer; Grep finds single places"
      : "";
  const next = more ? ` Continue with offset ${last + 1}.` : "";
  return [`Lines ${shown.start} to ${last}${total}${why}.${next}`];
}

function refuseBinary(path: string, stats: Stats): ToolOutcome {
  return failed(
    `${path} is a binary file (${stats.size} bytes) of a kind that cannot be shown. Use a shell command made for its format.`,
  );
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MB`;
}

const chunkBytes = 64 * 1024;
const maxScannedBytes = 256 * 1024 * 1024;
