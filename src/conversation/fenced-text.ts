import { escapeControlTags } from "./escape-control-tags.ts";

/** The fences that parts of a prompt stand in; only the runtime may open or close one. */
const fences = /<(\s{0,4}\/?\s{0,4})(skill(?:-notes)?(?![\w-])|agent-memory|instructions|mcp-instructions)/gi;

/** Read by a model and seen by nobody: controls, directions, tags, and what only splits a word of plain letters. */
const hidden =
  /[^\P{Cc}\n\t]|[\u200B\u200E\u200F\u202A-\u202E\u2060-\u2069\uFEFF\u{E0000}-\u{E007F}]|(?<=[!-~])(?:\u200C|\u200D|\u00AD)+(?=[!-~])/gu;

/**
 * Text of files and commands that is put into a fence of a prompt: it may not end the fence, pose as another part or as the
 * runtime, hide anything from whoever reviews the file, or hold what a terminal obeys.
 */
export function fencedText(text: string): string {
  return escapeControlTags(text.toWellFormed().replace(/\r\n?/g, "\n").replace(hidden, "")).replace(fences, "<\\$1$2");
}
