import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { limitText } from "../limit-text.ts";

export interface NotebookCell {
  /** The id in the file, or `cell-3` for the fourth cell where the file has none. */
  readonly id: string;
  readonly index: number;
  readonly type: string;
  readonly source: string;
  readonly record: JsonRecord;
}

export interface Notebook {
  readonly cells: readonly NotebookCell[];
  readonly language: string;
  /** Cells have ids of their own from format 4.5 on. */
  readonly hasCellIds: boolean;
}

type NotebookReading =
  | { readonly type: "notebook"; readonly notebook: Notebook }
  | { readonly type: "broken"; readonly reason: string };

export function readNotebookJson(text: string): NotebookReading {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return {
      type: "broken",
      reason: `it is not valid JSON: ${error instanceof Error ? error.message : error}`,
    };
  }
  if (!isRecord(value) || !Array.isArray(value["cells"])) {
    return { type: "broken", reason: "it has no list of cells; notebooks of format 4 and later have one" };
  }
  const cells = value["cells"].map((value, index) => {
    const record = isRecord(value) ? value : {};
    const id = record["id"];
    const type = record["cell_type"];
    return {
      id: typeof id === "string" && id !== "" ? id : `cell-${index}`,
      index,
      type: typeof type === "string" ? type : "raw",
      source: joinedText(record["source"]),
      record,
    };
  });
  const major = Number(value["nbformat"]);
  const minor = Number(value["nbformat_minor"]);
  const hasCellIds = major > 4 || (major === 4 && minor >= 5);
  return { type: "notebook", notebook: { cells, language: languageOf(value), hasCellIds } };
}

/** By id, or by place as `cell-3`, counted from 0. */
export function findCell(notebook: Notebook, id: string): NotebookCell | undefined {
  const named = notebook.cells.find((cell) => cell.id === id);
  if (named !== undefined) return named;
  const place = /^(?:cell-)?(\d+)$/.exec(id);
  return place === null ? undefined : notebook.cells[Number(place[1])];
}

/** Texts in a notebook are one string or a list of lines. */
function joinedText(value: unknown): string {
  if (typeof value === "string") return value;
  return Array.isArray(value) ? value.filter((part) => typeof part === "string").join("") : "";
}

function languageOf(notebook: JsonRecord): string {
  const metadata = isRecord(notebook["metadata"]) ? notebook["metadata"] : {};
  for (const key of ["language_info", "kernelspec"]) {
    const part = metadata[key];
    const name = isRecord(part) ? (part["name"] ?? part["language"]) : undefined;
    if (typeof name === "string") return name;
  }
  return "python";
}

/** A notebook as text: each cell under a heading with the id that NotebookEdit takes, its outputs shortened. */
export function notebookText(notebook: Notebook): string {
  if (notebook.cells.length === 0) return "(a notebook without cells)";
  return notebook.cells
    .map((cell) => {
      const kind = cell.type === "code" ? `code, ${notebook.language}` : cell.type;
      const outputs = Array.isArray(cell.record["outputs"])
        ? cell.record["outputs"].map((output) => {
            if (!isRecord(output)) return "";
            if (output["output_type"] === "error") {
              const trace = joinedText(output["traceback"]) || `${output["ename"]}: ${output["evalue"]}`;
              return shorten(trace);
            }
            if (output["text"] !== undefined) return shorten(joinedText(output["text"]));
            const data = isRecord(output["data"]) ? output["data"] : {};
            const others = Object.entries(data)
              .filter(([type]) => type.startsWith("image/"))
              .map(([type, value]) => `(${type}, ${joinedText(value).length} characters of data, not shown)`);
            return [shorten(joinedText(data["text/plain"])), ...others]
              .filter((text) => text !== "")
              .join("\n");
          })
        : [];
      const shown = outputs.filter((text) => text !== "").map((text) => `[output]\n${text}`);
      return [`=== cell ${cell.id} (${kind}) ===`, cell.source, ...shown].join("\n");
    })
    .join("\n\n");
}

function shorten(text: string): string {
  const plain = text.replace(/\u001b\[[0-9;]*[A-Za-z]/g, "").trimEnd();
  return limitText(plain, maxOutput).text;
}

const maxOutput = 2000;
