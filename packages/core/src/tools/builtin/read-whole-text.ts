import { decodeText, looksBinary } from "../decode-text.ts";
import type { ToolContext } from "../tool.ts";
import { locateDecided } from "./change-file.ts";
import { loadBytes, openFile } from "./open-file.ts";

export type WholeText =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "missing" }
  | { readonly type: "refused"; readonly reason: string };

/** A text file as it is, for those that show it to no model themselves. It counts as seen by the agent where `isSeen` says so. */
export async function readWholeText(
  path: string,
  context: ToolContext,
  isSeen: (text: string) => boolean = () => true,
): Promise<WholeText> {
  const located = await locateDecided(path, context);
  if (located.type === "refused") return located;
  const opened = await openFile(located.realPath);
  if (opened.type === "missing") return { type: "missing" };
  if (opened.type === "folder") return { type: "refused", reason: `${located.path} is a folder.` };
  if (opened.type === "refused") return opened;
  using handle = opened.handle;
  const loaded = await loadBytes(handle.descriptor, opened.stats);
  if (loaded === undefined)
    return { type: "refused", reason: `${located.path} is too large to be read whole.` };
  if (looksBinary(loaded.bytes))
    return { type: "refused", reason: `${located.path} is a binary file; only texts can be read.` };
  const { text } = decodeText(loaded.bytes);
  if (isSeen(text)) {
    const { digest, stats } = loaded;
    context.files.noteSeen(located.realPath, { digest, mtimeMs: stats.mtimeMs, partial: false });
  }
  return { type: "text", text };
}
