import { takeStart } from "../output-limit.ts";
import { readPageRange } from "../page-range.ts";
import type { ToolOutcome } from "../tool.ts";
import { failed } from "./builtin-tool.ts";
import type { LoadedFile } from "./open-file.ts";
import type { ReadRequest } from "./read-text.ts";

export async function readPdf(
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
        texts.push("[The page goes on; this is as much as fits into one answer.]");
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
