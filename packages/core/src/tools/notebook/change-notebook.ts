import { applyEdits, type FormattingOptions, type JSONPath, modify } from "jsonc-parser";
import { findCell, type Notebook, type NotebookCell } from "./notebook.ts";

export interface CellChange {
  readonly mode: "replace" | "insert" | "delete";
  readonly cellId?: string | undefined;
  readonly cellType?: "code" | "markdown" | undefined;
  readonly source: string;
  /** The id of a cell that is inserted. */
  readonly newId: string;
}

export type NotebookChange =
  | {
      readonly type: "changed";
      readonly text: string;
      readonly cell: { readonly id: string; readonly type: string };
    }
  | { readonly type: "refused"; readonly reason: string };

/** Changes one cell in the text of a notebook; everything else stays as it is written, byte for byte. */
export function changeNotebook(text: string, notebook: Notebook, change: CellChange): NotebookChange {
  const cell = change.cellId === undefined ? undefined : findCell(notebook, change.cellId);
  if (change.cellId !== undefined && cell === undefined) {
    return { type: "refused", reason: `there is no cell ${change.cellId}; ${listCells(notebook)}` };
  }
  if (change.mode === "insert") {
    if (change.cellType === undefined) {
      return { type: "refused", reason: "a cell that is inserted needs a cell_type: code or markdown" };
    }
    const index = cell === undefined ? 0 : cell.index + 1;
    const made = {
      cell_type: change.cellType,
      ...(change.cellType === "code" ? { execution_count: null } : {}),
      ...(notebook.hasCellIds ? { id: change.newId } : {}),
      metadata: {},
      ...(change.cellType === "code" ? { outputs: [] } : {}),
      source: sourceLines(change.source),
    };
    const edited = applyChanges(text, [[["cells", index], made]], true);
    const id = notebook.hasCellIds ? change.newId : `cell-${index}`;
    return { type: "changed", text: edited, cell: { id, type: change.cellType } };
  }
  if (cell === undefined) {
    return {
      type: "refused",
      reason: `cell_id must say which cell to ${change.mode}; ${listCells(notebook)}`,
    };
  }
  if (change.mode === "delete") {
    const edited = applyChanges(text, [[["cells", cell.index], undefined]]);
    return { type: "changed", text: edited, cell };
  }
  return replaceCell(text, cell, change);
}

/** What a cell printed belongs to its old source, so it goes with it. */
function replaceCell(text: string, cell: NotebookCell, change: CellChange): NotebookChange {
  const type = change.cellType ?? cell.type;
  const keepsString = typeof cell.record["source"] === "string";
  const at = (key: string): JSONPath => ["cells", cell.index, key];
  const changes: Change[] = [[at("source"), keepsString ? change.source : sourceLines(change.source)]];
  if (type !== cell.type) changes.push([at("cell_type"), type]);
  if (type === "code") changes.push([at("execution_count"), null], [at("outputs"), []]);
  else {
    for (const key of ["execution_count", "outputs"]) {
      if (Object.hasOwn(cell.record, key)) changes.push([at(key), undefined]);
    }
  }
  const edited = applyChanges(text, changes);
  return { type: "changed", text: edited, cell: { id: cell.id, type } };
}

type Change = readonly [path: JSONPath, value: unknown];

function applyChanges(text: string, changes: readonly Change[], isArrayInsertion = false): string {
  const indent = /^\s*\{\r?\n([ \t]+)/.exec(text)?.[1] ?? " ";
  const formattingOptions: FormattingOptions = {
    insertSpaces: !indent.startsWith("\t"),
    tabSize: indent.length,
    eol: text.includes("\r\n") ? "\r\n" : "\n",
  };
  let edited = text;
  for (const [path, value] of changes) {
    edited = applyEdits(edited, modify(edited, path, value, { formattingOptions, isArrayInsertion }));
  }
  return edited;
}

/** The notebook format keeps a source as lines that end in their line breaks. */
function sourceLines(source: string): string[] {
  return source.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function listCells({ cells }: Notebook): string {
  if (cells.length === 0) return "the notebook has no cells";
  const ids = cells.slice(0, 20).map(({ id }) => id);
  return `it has ${ids.join(", ")}${cells.length > ids.length ? " and more" : ""}`;
}
