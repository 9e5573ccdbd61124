import { randomBytes } from "node:crypto";
import { decodeText, encodeText, looksBinary } from "../decode-text.ts";
import { explainMismatch } from "../explain-mismatch.ts";
import * as t from "../input-type.ts";
import { diffLines } from "../line-diff.ts";
import { type CellChange, changeNotebook } from "../notebook/change-notebook.ts";
import { readNotebookJson } from "../notebook/notebook.ts";
import { findOccurrences, replaceRanges, type TextRange } from "../replace-ranges.ts";
import type { Tool, ToolOutcome } from "../tool.ts";
import { builtinTool, optionalChoice, optionalFlag, optionalText } from "./builtin-tool.ts";
import { type ChangeDecision, type CurrentFile, changeFile } from "./change-file.ts";

const editInput = t.object({
  file_path: t.string().describe("The file; absolute, or relative to the working directory."),
  old_string: t.string().describe("The text to replace, exactly as it appears in the file."),
  new_string: t.string().describe("What to put there instead."),
  replace_all: optionalFlag("Replace every occurrence instead of exactly one."),
});

type EditInput = t.Infer<typeof editInput>;

export const editTool: Tool = builtinTool<EditInput>({
  name: "Edit",
  description: `Replaces a piece of text in a file that was read before.
- \`old_string\` must appear in the file exactly so, with its spaces and line breaks but without the line numbers that Read shows, and only once: add lines around it until it is unique, or set \`replace_all\`.
- A file that changed since it was read, also by another agent, is refused: read it again.
- Line ends (CRLF) and encoding of the file are kept. An empty \`old_string\` makes a new file and is refused where one exists.`,
  input: editInput,
  call: (given, context) =>
    changeFile(
      { given: given.file_path, whole: false, decide: (current, path) => decideEdit(given, current, path) },
      context,
    ),
});

function decideEdit(given: EditInput, current: CurrentFile | undefined, path: string): ChangeDecision {
  const { old_string, new_string } = given;
  if (current === undefined) {
    if (old_string !== "")
      return refused(`${path} does not exist. Use Write, or an empty old_string, to make it.`);
    return { type: "write", bytes: Buffer.from(new_string, "utf8"), outcome: created(path, new_string) };
  }
  if (old_string === "") {
    return refused(
      `${path} exists, and an empty old_string only makes new files. Say which text to replace, or use Write.`,
    );
  }
  if (old_string === new_string)
    return refused("old_string and new_string are the same; nothing would change.");
  if (current.bytes === undefined)
    return refused(`${path} is too large to edit. Use a shell command such as sed.`);
  if (looksBinary(current.bytes)) return refused(`${path} is a binary file; Edit changes text only.`);
  const decoded = decodeText(current.bytes);
  if (!decoded.exact) {
    return refused(
      `${path} contains bytes that are not valid ${decoded.encoding}; writing it back would harm it. Use a shell command.`,
    );
  }
  const { text } = decoded;
  const ranges = findOccurrences(text, old_string);
  if (ranges.length === 0) {
    return refused(`old_string was not found in ${path}. ${explainMismatch(text, old_string)}`);
  }
  if (given.replace_all !== true) {
    const places = findOccurrences(text, old_string, true);
    if (places.length > 1) {
      const lines = places.slice(0, 5).map(({ start }) => lineAt(text, start));
      const more = places.length > lines.length ? " and more" : "";
      const ambiguity = `old_string occurs ${places.length} times in ${path} (lines ${lines.join(", ")}${more}). Add lines around it until it is unique, or set replace_all to change every one.`;
      return refused(ambiguity);
    }
  }
  const after = replaceRanges(text, ranges, new_string);
  return {
    type: "write",
    bytes: encodeText(after, decoded),
    outcome: edited(given, path, { text, after, ranges }),
  };
}

function edited(
  given: EditInput,
  path: string,
  {
    text,
    after,
    ranges,
  }: { readonly text: string; readonly after: string; readonly ranges: readonly TextRange[] },
): ToolOutcome {
  const { hunks, added, removed } = diffLines(text, after);
  const line = lineAt(text, ranges[0]?.start ?? 0);
  const times =
    ranges.length === 1 ? `at line ${line}` : `at ${ranges.length} places, the first at line ${line}`;
  return {
    content: `Edited ${path} ${times} (${plural(added, "line")} added, ${removed} removed).`,
    data: {
      filePath: path,
      oldString: given.old_string,
      newString: given.new_string,
      replaceAll: given.replace_all === true,
      userModified: false,
      ...smallText("originalFile", text),
      structuredPatch: hunks,
    },
  };
}

function lineAt(text: string, position: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < position; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}

function refused(reason: string): ChangeDecision {
  return { type: "refused", reason };
}

const writeInput = t.object({
  file_path: t.string().describe("The file; absolute, or relative to the working directory."),
  content: t.string().describe("All that the file is to hold."),
});

export const writeTool: Tool = builtinTool<t.Infer<typeof writeInput>>({
  name: "Write",
  description: `Makes a file, or replaces all of one, and makes the folders above it. To change a part of a file use Edit.
- A file that exists must have been read whole with Read; one that has changed since then is refused.
- The content is written exactly as given, as UTF-8; line ends and byte order mark of the old file are not kept.`,
  input: writeInput,
  call: ({ file_path, content }, context) =>
    changeFile(
      {
        given: file_path,
        whole: true,
        decide: (current, path) => ({
          type: "write",
          bytes: Buffer.from(content, "utf8"),
          outcome: current === undefined ? created(path, content) : replaced(path, content, current),
        }),
      },
      context,
    ),
});

/** The outcome of a tool that made a file. */
function created(path: string, content: string): ToolOutcome {
  const { hunks, added } = diffLines("", content);
  return {
    content: `Made ${path} (${plural(added, "line")}).`,
    data: { type: "create", filePath: path, ...smallText("content", content), structuredPatch: hunks },
  };
}

function replaced(path: string, content: string, { bytes }: CurrentFile): ToolOutcome {
  const shared = { type: "update", filePath: path, ...smallText("content", content) };
  if (bytes === undefined) return { content: `Replaced ${path}.`, data: { ...shared, structuredPatch: [] } };
  const before = decodeText(bytes).text;
  const { hunks, added, removed } = diffLines(before, content);
  return {
    content:
      added + removed === 0
        ? `Wrote ${path}; no line is different from before.`
        : `Replaced ${path} (${plural(added, "line")} added, ${removed} removed).`,
    data: { ...shared, ...smallText("originalFile", before), structuredPatch: hunks },
  };
}

/** Transcripts keep texts only while they are small. */
function smallText(key: string, text: string): Readonly<Record<string, string>> {
  return text.length > maxKept ? {} : { [key]: text };
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

const maxKept = 16_000;

const notebookInput = t.object({
  notebook_path: t.string().describe("The .ipynb file; absolute, or relative to the working directory."),
  cell_id: optionalText(
    "The cell, as Read names it, or its place as cell-0, cell-1 and so on. With insert: the cell to insert after; absent means at the top.",
  ),
  new_source: t
    .preprocess((value) => value ?? "", t.string())
    .describe("The source of the cell; unused with delete."),
  cell_type: optionalChoice(
    ["code", "markdown"],
    "Required with insert; with replace it changes the kind of the cell.",
  ),
  edit_mode: optionalChoice(["replace", "insert", "delete"], "What to do; replace if absent."),
});

type NotebookEditInput = t.Infer<typeof notebookInput>;

export const notebookEditTool: Tool = builtinTool<NotebookEditInput>({
  name: "NotebookEdit",
  description: `Replaces, inserts or deletes one cell of a Jupyter notebook (.ipynb) that was read before. Everything else in the file stays as it is; a replaced code cell loses its outputs. A notebook that changed since it was read is refused.`,
  input: notebookInput,
  call: (given, context) =>
    changeFile(
      { given: given.notebook_path, whole: false, decide: (current, path) => decide(given, current, path) },
      context,
    ),
});

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
      content: `${verbs[change.mode]} cell ${changed.cell.id} (${changed.cell.type}) in ${path}.`,
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

const verbs = { replace: "Replaced", insert: "Inserted", delete: "Deleted" } as const;
