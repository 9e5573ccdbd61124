import * as z from "zod";
import { decodeText, encodeText, looksBinary } from "../decode-text.ts";
import { explainMismatch } from "../explain-mismatch.ts";
import { diffLines } from "../line-diff.ts";
import { findOccurrences, replaceRanges, type TextRange } from "../replace-ranges.ts";
import type { Tool, ToolOutcome } from "../tool.ts";
import { builtinTool } from "./builtin-tool.ts";
import { type ChangeDecision, type CurrentFile, changeFile } from "./change-file.ts";
import { created, plural, smallText } from "./create-write-tool.ts";
import { optionalFlag } from "./optional-text.ts";

const input = z.object({
  file_path: z.string().describe("The file; absolute, or relative to the working directory."),
  old_string: z.string().describe("The text to replace, exactly as it appears in the file."),
  new_string: z.string().describe("What to put there instead."),
  replace_all: optionalFlag("Replace every occurrence instead of exactly one."),
});

type EditInput = z.infer<typeof input>;

export function createEditTool(): Tool {
  return builtinTool<EditInput>({
    name: "Edit",
    description: `Replaces a piece of text in a file that was read before.
- \`old_string\` must appear in the file exactly so, with its spaces and line breaks but without the line numbers that Read shows, and only once: add lines around it until it is unique, or set \`replace_all\`.
- A file that changed since it was read, also by another agent, is refused: read it again.
- Line ends (CRLF) and encoding of the file are kept. An empty \`old_string\` makes a new file and is refused where one exists.`,
    input,
    call: (given, context) =>
      changeFile(
        { given: given.file_path, whole: false, decide: (current, path) => decideEdit(given, current, path) },
        context,
      ),
  });
}

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
      `${path} holds bytes that are not valid ${decoded.encoding}; writing it back would harm it. Use a shell command.`,
    );
  }
  const { text } = decoded;
  const ranges = findOccurrences(text, old_string);
  if (ranges.length === 0) {
    return refused(`old_string was not found in ${path}. ${explainMismatch(text, old_string)}`);
  }
  if (given.replace_all !== true) {
    const places = findOccurrences(text, old_string, true);
    if (places.length > 1) return refused(describeAmbiguity(path, text, places));
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

function describeAmbiguity(path: string, text: string, places: readonly TextRange[]): string {
  const lines = places.slice(0, 5).map(({ start }) => lineAt(text, start));
  const more = places.length > lines.length ? " and more" : "";
  return `old_string occurs ${places.length} times in ${path} (lines ${lines.join(", ")}${more}). Add lines around it until it is unique, or set replace_all to change every one.`;
}

function lineAt(text: string, position: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < position; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}

function refused(reason: string): ChangeDecision {
  return { type: "refused", reason };
}
