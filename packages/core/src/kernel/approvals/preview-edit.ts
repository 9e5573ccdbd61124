// @io
import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { diffLines } from "../../tools/line-diff.ts";
import { findOccurrences, replaceRanges } from "../../tools/replace-ranges.ts";

/** What a call would change in a file, for the person who decides about it. */
export interface EditPreview {
  readonly path: string;
  readonly hunks: ReturnType<typeof diffLines>["hunks"];
}

const maxBytes = 1024 * 1024;

/** What a call would change in a file; undefined where that cannot be reported before it runs. */
export async function previewEdit(
  tool: string,
  input: Readonly<Record<string, unknown>>,
  directory: string,
): Promise<EditPreview | undefined> {
  const { file_path: path, content, old_string: old, new_string: changed } = input;
  if (typeof path !== "string") return undefined;
  const before = await textOf(resolve(directory, path));
  if (before === undefined) return undefined;
  if (tool === "Write" && typeof content === "string") return toDiff(path, before, content);
  if (tool !== "Edit" || typeof old !== "string" || typeof changed !== "string") return undefined;
  if (old === "") return before === "" ? toDiff(path, before, changed) : undefined;
  const found = findOccurrences(before, old);
  const ranges = input["replace_all"] === true ? found : found.slice(0, 1);
  return ranges.length === 0 ? undefined : toDiff(path, before, replaceRanges(before, ranges, changed));
}

function toDiff(path: string, before: string, after: string): EditPreview | undefined {
  const { hunks } = diffLines(before, after);
  return hunks.length === 0 ? undefined : { path, hunks };
}

/** A file that is not there yet is empty; one that cannot be shown is undefined. */
async function textOf(file: string): Promise<string | undefined> {
  try {
    const { size } = await stat(file);
    return size > maxBytes ? undefined : await readFile(file, "utf8");
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ENOENT" ? "" : undefined;
  }
}
