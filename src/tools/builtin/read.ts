import { extname } from "node:path";
import * as z from "zod";
import { imageTypeOf } from "../image-header.ts";
import type { Tool, ToolContext, ToolOutcome } from "../tool.ts";
import { pathForRules } from "../workspace-path.ts";
import { builtinTool, failed, fileTrouble } from "./builtin-tool.ts";
import { describeMissing } from "./describe-missing.ts";
import { type Located, locateDecided } from "./locate.ts";
import { loadBytes, openFile } from "./open-file.ts";
import { readImage } from "./read-image.ts";
import { readNotebook } from "./read-notebook.ts";
import { readPdf } from "./read-pdf.ts";
import { type ReadRequest, readHugeText, readText } from "./read-text.ts";
import { optionalFlag, optionalNumber, optionalText } from "./tolerant-input.ts";

const input = z.object({
  file_path: z.string().describe("The file; absolute, or relative to the working directory."),
  offset: optionalNumber("The first line to show, counted from 1."),
  limit: optionalNumber("How many lines to show; 2000 if absent."),
  pages: optionalText('Pages of a PDF, such as "3" or "10-20"; at most 20 in one call.'),
  allow_large: optionalFlag("Show up to 400,000 characters instead of 100,000."),
});

type ReadInput = z.infer<typeof input>;

export function createReadTool(): Tool {
  return builtinTool<ReadInput>({
    name: "Read",
    description: `Shows what is in a file. Use it before you change a file, and whenever you know which file you need; to look for something in many files use Grep, to find files by name use Glob.
- Text comes with a line number and a tab before each line; they are not part of the file. At most 2000 lines and 100,000 characters are shown, longer lines are cut at 2000 characters; \`offset\` and \`limit\` show another part.
- PNG, JPEG, GIF and WebP files are shown as images, PDF files as text per page (\`pages\`), notebooks as cells with their outputs.
- Folders, devices and other binary files are refused.`,
    effect: "read",
    input,
    pathsOf: ({ file_path }, directory, home) => [pathForRules(file_path, directory, home)],
    async call(given, context) {
      const located = await locateDecided(given.file_path, context);
      if (located.type === "refused") return failed(located.reason);
      return readLocated(given, located, context);
    },
  });
}

type Found = Extract<Located, { type: "located" }>;

async function readLocated(given: ReadInput, found: Found, context: ToolContext): Promise<ToolOutcome> {
  const opened = await openFile(found.realPath);
  switch (opened.type) {
    case "refused":
      return failed(opened.reason);
    case "missing":
      return failed(await describeMissing(found.path, context));
    case "folder":
      return failed(`${found.path} is a folder. Use Glob with this path to see the files in it.`);
    case "file": {
      await using handle = opened.handle;
      const request = readRequest(given, found, context);
      try {
        const loaded = await loadBytes(handle, opened.stats);
        context.signal.throwIfAborted();
        if (loaded === undefined) return await readHugeText(request, handle, opened.stats);
        if (imageTypeOf(loaded.bytes) !== undefined) return readImage(request, loaded);
        if (isPdf(loaded.bytes)) return await readPdf(request, loaded, given.pages);
        if (extname(found.realPath).toLowerCase() === ".ipynb") return readNotebook(request, loaded);
        return readText(request, loaded);
      } catch (error) {
        context.signal.throwIfAborted();
        return failed(fileTrouble(error, found.path));
      }
    }
  }
}

function readRequest(given: ReadInput, { path, realPath }: Found, context: ToolContext): ReadRequest {
  return {
    path,
    realPath,
    context,
    range: {
      start: Math.max(1, given.offset ?? 1),
      count: given.limit === undefined || given.limit < 1 ? 2000 : given.limit,
      lineLength: 2000,
      characters: given.allow_large === true ? 400_000 : 100_000,
    },
  };
}

function isPdf(bytes: Buffer): boolean {
  return bytes.subarray(0, 5).toString("latin1") === "%PDF-";
}
