import type { Stats } from "node:fs";
import { extname } from "node:path";
import { TextDecoder } from "node:util";
import { decodeText, looksBinary, shapeOf } from "../decode-text.ts";
import { addSeenLines } from "../file-ledger.ts";
import { imageTypeOf } from "../image-size.ts";
import * as t from "../input-type.ts";
import { takeStart } from "../limit-text.ts";
import { notebookText, readNotebookJson } from "../notebook/notebook.ts";
import { readImageBlock } from "../read-image-block.ts";
import type { Tool, ToolContext, ToolOutcome } from "../tool.ts";
import {
  builtinTool,
  failed,
  fileTrouble,
  optionalFlag,
  optionalNumber,
  optionalText,
} from "./builtin-tool.ts";
import { locateDecided } from "./change-file.ts";
import { fingerprintOf, type LoadedFile, loadBytes, openFile, readAt } from "./open-file.ts";
import { describeMissing } from "./search-root.ts";

const input = t.object({
  file_path: t.string().describe("The file; absolute, or relative to the working directory."),
  offset: optionalNumber("The first line to show, counted from 1."),
  limit: optionalNumber("How many lines to show; 2000 if absent."),
  pages: optionalText('Pages of a PDF, such as "3" or "10-20"; at most 20 in one call.'),
  allow_large: optionalFlag("Show up to 400,000 characters instead of 100,000."),
});

type ReadInput = t.Infer<typeof input>;

export const readTool: Tool = builtinTool<ReadInput>({
  name: "Read",
  description: `Shows what is in a file. Use it before you change a file, and whenever you know which file you need; to look for something in many files use Grep, to find files by name use Glob.
- Text comes with a line number and a tab before each line; they are not part of the file. At most 2000 lines and 100,000 characters are shown, longer lines are cut at 2000 characters; \`offset\` and \`limit\` show another part.
- PNG, JPEG, GIF and WebP files are shown as images, PDF files as text per page (\`pages\`), notebooks as cells with their outputs.
- Folders, devices and other binary files are refused.`,
  input,
  async call(given, context) {
    const located = await locateDecided(given.file_path, context);
    if (located.type === "refused") return failed(located.reason);
    const opened = await openFile(located.realPath);
    switch (opened.type) {
      case "refused":
        return failed(opened.reason);
      case "missing":
        return failed(await describeMissing(located.path, context));
      case "folder":
        return failed(`${located.path} is a folder. Use Glob with this path to see the files in it.`);
      case "file": {
        using handle = opened.handle;
        const request: ReadRequest = {
          path: located.path,
          realPath: located.realPath,
          context,
          range: {
            start: Math.max(1, given.offset ?? 1),
            count: given.limit === undefined || given.limit < 1 ? 2000 : given.limit,
            lineLength: 2000,
            characters: given.allow_large === true ? 400_000 : 100_000,
          },
        };
        try {
          const loaded = await loadBytes(handle.descriptor, opened.stats);
          context.signal.throwIfAborted();
          if (loaded === undefined) return await readHugeText(request, handle.descriptor, opened.stats);
          if (imageTypeOf(loaded.bytes) !== undefined) return readImage(request, loaded);
          if (loaded.bytes.subarray(0, 5).toString("latin1") === "%PDF-")
            return await readPdf(request, loaded, given.pages);
          if (extname(located.realPath).toLowerCase() === ".ipynb") return readNotebook(request, loaded);
          return readText(request, loaded);
        } catch (error) {
          context.signal.throwIfAborted();
          return failed(fileTrouble(error, located.path));
        }
      }
    }
  },
});

function readImage(request: ReadRequest, { bytes, digest, stats }: LoadedFile): ToolOutcome {
  const { path, realPath, context } = request;
  const reading = readImageBlock(bytes);
  if (reading.type === "unusable") {
    const advice =
      reading.isTooLarge === true ? " Make a smaller copy with a shell command and read that." : "";
    return failed(`${path} ${reading.why}${advice}`);
  }
  const { block, mediaType, size } = reading;
  context.files.noteSeen(realPath, { digest, mtimeMs: stats.mtimeMs, partial: false });
  return {
    content: [{ type: "text", text: `${path} (${mediaType}, ${size.width} × ${size.height} pixels)` }, block],
    data: {
      type: "image",
      file: { filePath: path, type: mediaType, originalSize: bytes.length, dimensions: size },
    },
  };
}

/** A notebook that cannot be understood is shown as the text it is, so that it can be fixed. */
function readNotebook(request: ReadRequest, loaded: LoadedFile): ToolOutcome {
  const reading = readNotebookJson(decodeText(loaded.bytes).text);
  if (reading.type === "broken") return readText(request, loaded);
  const window = createLineWindow(request.range);
  window.take(notebookText(reading.notebook));
  const shown = window.finish();
  const { digest, stats } = loaded;
  request.context.files.noteSeen(request.realPath, {
    digest,
    mtimeMs: stats.mtimeMs,
    partial: shown.start > 1 || shown.lines.length < shown.total,
  });
  const remarks = describeRange(shown, request.range, true).map((remark) => `\n\n[${remark}]`);
  const cells = reading.notebook.cells.map(({ id, type }) => ({ cell_id: id, cellType: type }));
  return {
    content: `${shown.lines.join("\n")}${remarks.join("")}`,
    data: { type: "notebook", file: { filePath: request.path, cells } },
  };
}

async function readPdf(
  request: ReadRequest,
  { bytes, digest, stats }: LoadedFile,
  pages: string | undefined,
): Promise<ToolOutcome> {
  const { path, realPath, context } = request;
  const document = await openPdf(bytes);
  if (typeof document === "string") return failed(`${path} cannot be read as PDF: ${document}`);
  try {
    const total = document.numPages;
    const range = readPageRange(pages, { total, limit: maxPages });
    if (range.type === "refused") return failed(`${path}: ${range.reason}`);
    const texts: string[] = [];
    let left = request.range.characters;
    let last = range.first - 1;
    while (last < range.last && left > 0) {
      context.signal.throwIfAborted();
      last += 1;
      const text = await pageText(document, last);
      const shown = takeStart(text, left);
      texts.push(`--- page ${last} of ${total} ---\n${shown === "" ? "(no text; perhaps a scan)" : shown}`);
      if (shown.length < text.length)
        texts.push("[The page continues; this is as much as fits into one answer.]");
      left -= text.length;
    }
    context.files.noteSeen(realPath, {
      digest,
      mtimeMs: stats.mtimeMs,
      partial: last < total || range.first > 1,
    });
    if (last < total) texts.push(`[${total - last} more pages; continue with pages "${last + 1}-".]`);
    const file = {
      filePath: path,
      originalSize: bytes.length,
      totalPages: total,
      firstPage: range.first,
      lastPage: last,
    };
    return { content: texts.join("\n\n"), data: { type: "pdf", file } };
  } finally {
    await document.loadingTask.destroy();
  }
}

async function openPdf(bytes: Buffer) {
  const { getDocumentProxy } = await import("unpdf");
  try {
    // The library takes the memory over, so it gets a copy of its own.
    return await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return /password/i.test(message) ? "it is protected with a password." : message;
  }
}

async function pageText(
  document: Exclude<Awaited<ReturnType<typeof openPdf>>, string>,
  number: number,
): Promise<string> {
  const page = await document.getPage(number);
  const { items } = await page.getTextContent();
  page.cleanup();
  const text = items.map((item) => ("str" in item ? `${item.str}${item.hasEOL ? "\n" : ""}` : "")).join("");
  return text.trim();
}

const maxPages = 20;

interface ReadRequest {
  readonly path: string;
  readonly realPath: string;
  readonly context: ToolContext;
  readonly range: LineRange;
}

function readText(request: ReadRequest, { bytes, digest, stats }: LoadedFile): ToolOutcome {
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
async function readHugeText(request: ReadRequest, descriptor: number, stats: Stats): Promise<ToolOutcome> {
  const buffer = Buffer.alloc(chunkBytes);
  const window = createLineWindow(request.range);
  let decoder: TextDecoder | undefined;
  let position = 0;
  while (!window.full && position < maxScannedBytes) {
    request.context.signal.throwIfAborted();
    const bytesRead = await readAt(descriptor, buffer, position);
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
      `Line ${shown.start} of ${request.path} is past the first ${megabytes(maxScannedBytes)}; use Grep to find the place, or a shell command to cut it out.`,
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

function describeRange(shown: ShownLines, range: LineRange, whole: boolean): string[] {
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

/** Large enough for the thread pool, so that a huge file does not keep others waiting. */
const chunkBytes = 256 * 1024;
const maxScannedBytes = 256 * 1024 * 1024;

type PageRange =
  | { readonly type: "pages"; readonly first: number; readonly last: number }
  | { readonly type: "refused"; readonly reason: string };

/** Which pages to show: `3`, `10-20`, `10-`; the first ones by default. */
export function readPageRange(
  given: string | undefined,
  { total, limit }: { readonly total: number; readonly limit: number },
): PageRange {
  if (given === undefined) return { type: "pages", first: 1, last: Math.min(total, limit) };
  const match = /^\s*(\d+)\s*(?:([-\u2013])\s*(\d*))?\s*$/.exec(given);
  if (match === null) return refused(`"${given}" is not a page range; write "3", "10-20" or "10-".`);
  const first = Number(match[1]);
  const open = match[2] !== undefined && (match[3] ?? "") === "";
  const wanted = match[2] === undefined ? first : Number(match[3]);
  const last = Math.min(total, open ? first + limit - 1 : wanted);
  if (first < 1 || first > total)
    return refused(`The file has pages 1 to ${total}; there is no page ${first}.`);
  if (last < first) return refused(`"${given}" ends before it begins; write it as "first-last".`);
  if (last - first + 1 > limit)
    return refused(`"${given}" is more than ${limit} pages; ask for fewer at a time.`);
  return { type: "pages", first, last };
}

function refused(reason: string): PageRange {
  return { type: "refused", reason };
}

export interface LineRange {
  /** The first line that is wanted, counted from 1. */
  readonly start: number;
  readonly count: number;
  /** Longer lines are cut. */
  readonly lineLength: number;
  /** How many characters all lines together may have; the first line is always shown. */
  readonly characters: number;
}

export interface ShownLines {
  readonly start: number;
  readonly lines: readonly string[];
  /** How many lines there were, as far as the text was read. */
  readonly total: number;
  readonly shortened: number;
}

/** Takes a text in pieces of any size and keeps only the lines that are wanted. */
interface LineWindow {
  take(text: string): void;
  /** Whether no later line can be wanted. */
  readonly full: boolean;
  finish(): ShownLines;
}

export function createLineWindow(range: LineRange): LineWindow {
  const lines: string[] = [];
  let total = 0;
  let characters = 0;
  let shortened = 0;
  let full = false;
  let line = "";
  let length = 0;

  const endLine = (): void => {
    total += 1;
    if (!full && total >= range.start) keepLine();
    line = "";
    length = 0;
  };
  const keepLine = (): void => {
    const plain = length === line.length && line.endsWith("\r") ? line.slice(0, -1) : line;
    const cut = plain.length > range.lineLength;
    const start = takeStart(plain, range.lineLength);
    const shown = cut ? `${start}… [line cut, ${length - start.length} more characters]` : plain;
    if (lines.length > 0 && characters + shown.length > range.characters) {
      full = true;
      return;
    }
    lines.push(shown);
    characters += shown.length + 1;
    if (cut) shortened += 1;
    full = lines.length >= range.count;
  };
  const addToLine = (text: string, from: number, to: number): void => {
    length += to - from;
    // Two characters more than are shown: a carriage return, and the second half of a pair.
    const room = range.lineLength + 2 - line.length;
    if (room > 0 && !full && total + 1 >= range.start) line += text.slice(from, Math.min(to, from + room));
  };

  return {
    take(text) {
      let from = 0;
      for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", from)) {
        addToLine(text, from, at);
        endLine();
        from = at + 1;
      }
      addToLine(text, from, text.length);
    },
    get full() {
      return full;
    },
    finish() {
      if (length > 0) endLine();
      return { start: range.start, lines, total, shortened };
    },
  };
}

/** Each line with its number and a tab before it. */
export function numberLines({ start, lines }: Pick<ShownLines, "start" | "lines">): string {
  return lines.map((line, index) => `${start + index}\t${line}`).join("\n");
}
