import { randomBytes } from "node:crypto";
import * as z from "zod";
import { decodeText, encodeText } from "../decode-text.ts";
import { type CellChange, changeNotebook } from "../notebook/change-notebook.ts";
import { readNotebookJson } from "../notebook/notebook.ts";
import type { Tool } from "../tool.ts";
import { builtinTool } from "./builtin-tool.ts";
import { type ChangeDecision, type CurrentFile, changeFile } from "./change-file.ts";
import { optionalChoice, optionalText } from "./optional-text.ts";

const input = z.object({
  notebook_path: z.string().describe("The .ipynb file; absolute, or relative to the working directory."),
  cell_id: optionalText(
    "The cell, as Read names it, or its place as cell-0, cell-1 and so on. With insert: the cell to insert after; absent means at the top.",
  ),
  new_source: z
    .preprocess((value) => value ?? "", z.string())
    .describe("The source of the cell; unused with delete."),
  cell_type: optionalChoice(
    ["code", "markdown"],
    "Required with insert; with replace it changes the kind of the cell.",
  ),
  edit_mode: optionalChoice(["replace", "insert", "delete"], "What to do; replace if absent."),
});

type NotebookEditInput = z.infer<typeof input>;

export function createNotebookEditTool(): Tool {
  return builtinTool<NotebookEditInput>({
    name: "NotebookEdit",
    description: `Replaces, inserts or deletes one cell of a Jupyter notebook (.ipynb) that was read before. Everything else in the file stays as it is; a replaced code cell loses its outputs. A notebook that changed since it was read is refused.`,
    input,
    call: (given, context) =>
      changeFile(
        { given: given.notebook_path, whole: false, decide: (current, path) => decide(given, current, path) },
        context,
      ),
  });
}

function decide(given: NotebookEditInput, current: CurrentFile | undefined, path: string): ChangeDecision {
  if (current === undefined) return refused(`${path} does not exist. Use Write to make a notebook.`);
  if (current.bytes === undefined) return refused(`${path} is too large to edit.`);
  const decoded = decodeText(current.bytes);
  const reading = readNotebookJson(decoded.text);
  if (reading.type === "broken" || !decoded.exact) {
    const reason = reading.type === "broken" ? reading.reason : `its text is not valid ${decoded.encoding}`;
    return refused(`${path} cannot be edited as a notebook: ${reason}.`);
  }
  const change: CellChange = {
    mode: given.edit_mode ?? "replace",
    cellId: given.cell_id,
    cellType: given.cell_type,
    source: given.new_source,
    newId: randomBytes(4).toString("hex"),
  };
  const changed = changeNotebook(decoded.text, reading.notebook, change);
  if (changed.type === "refused") return refused(`${path}: ${changed.reason}.`);
  return {
    type: "write",
    bytes: encodeText(changed.text, decoded),
    outcome: {
      content: `${deeds[change.mode]} cell ${changed.cell.id} (${changed.cell.type}) in ${path}.`,
      data: {
        notebook_path: path,
        cell_id: changed.cell.id,
        cell_type: changed.cell.type,
        language: reading.notebook.language,
        edit_mode: change.mode,
        new_source: given.new_source,
      },
    },
  };
}

const deeds = { replace: "Replaced", insert: "Inserted", delete: "Deleted" } as const;

function refused(reason: string): ChangeDecision {
  return { type: "refused", reason };
}
