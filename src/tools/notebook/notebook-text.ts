import { isRecord } from "../../foundation/json-record.ts";
import { limitText } from "../limit-text.ts";
import { joinedText, type Notebook, type NotebookCell } from "./notebook.ts";

/** A notebook as text: each cell under a heading with the id that NotebookEdit takes, its outputs shortened. */
export function notebookText(notebook: Notebook): string {
  if (notebook.cells.length === 0) return "(a notebook without cells)";
  return notebook.cells.map((cell) => cellText(cell, notebook.language)).join("\n\n");
}

function cellText(cell: NotebookCell, language: string): string {
  const kind = cell.type === "code" ? `code, ${language}` : cell.type;
  const outputs = Array.isArray(cell.record["outputs"]) ? cell.record["outputs"].map(outputText) : [];
  const shown = outputs.filter((text) => text !== "").map((text) => `[output]\n${text}`);
  return [`=== cell ${cell.id} (${kind}) ===`, cell.source, ...shown].join("\n");
}

function outputText(output: unknown): string {
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
  return [shorten(joinedText(data["text/plain"])), ...others].filter((text) => text !== "").join("\n");
}

function shorten(text: string): string {
  const plain = text.replace(/\u001b\[[0-9;]*[A-Za-z]/g, "").trimEnd();
  return limitText(plain, maxOutput).text;
}

const maxOutput = 2000;
