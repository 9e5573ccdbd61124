import { createLineWindow } from "../line-window.ts";
import { readNotebookJson } from "../notebook.ts";
import { notebookText } from "../notebook-text.ts";
import { decodeText } from "../text-encoding.ts";
import type { ToolOutcome } from "../tool.ts";
import type { LoadedFile } from "./open-file.ts";
import { describeRange, type ReadRequest, readText } from "./read-text.ts";

/** A notebook that cannot be understood is shown as the text it is, so that it can be mended. */
export function readNotebook(request: ReadRequest, loaded: LoadedFile): ToolOutcome {
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
