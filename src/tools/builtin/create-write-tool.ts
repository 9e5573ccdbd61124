import * as z from "zod";
import { decodeText } from "../decode-text.ts";
import { diffLines } from "../line-diff.ts";
import type { Tool, ToolOutcome } from "../tool.ts";
import { builtinTool } from "./builtin-tool.ts";
import { type CurrentFile, changeFile } from "./change-file.ts";

const input = z.object({
  file_path: z.string().describe("The file; absolute, or relative to the working directory."),
  content: z.string().describe("All that the file is to hold."),
});

export function createWriteTool(): Tool {
  return builtinTool<z.infer<typeof input>>({
    name: "Write",
    description: `Makes a file, or replaces all of one, and makes the folders above it. To change a part of a file use Edit.
- A file that exists must have been read whole with Read; one that has changed since then is refused.
- The content is written exactly as given, as UTF-8; line ends and byte order mark of the old file are not kept.`,
    input,
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
}

/** The outcome of a tool that made a file. */
export function created(path: string, content: string): ToolOutcome {
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
export function smallText(key: string, text: string): Readonly<Record<string, string>> {
  return text.length > maxKept ? {} : { [key]: text };
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

const maxKept = 16_000;
