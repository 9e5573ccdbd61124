// @io
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ImageBlock, TextBlock } from "../conversation/message.ts";
import { boundOutput } from "../tools/bound-output.ts";
import type { ToolContext } from "../tools/tool.ts";
import { messageOf } from "./listed-tool.ts";
import type { ResultPart } from "./result-parts.ts";

export interface WrittenResult {
  readonly content: string | readonly (TextBlock | ImageBlock)[];
  /** Where the parts are that a model is not shown whole. */
  readonly files: readonly string[];
}

type OutputPlace = Pick<ToolContext, "outputDirectory" | "callId">;

/** Makes blocks of what a server gave back; text over the limit and what a model cannot see are kept in files. */
export async function writeResult(
  parts: readonly ResultPart[],
  limit: number,
  place: OutputPlace,
): Promise<WrittenResult> {
  const files: string[] = [];
  const blocks: (TextBlock | ImageBlock)[] = [];
  for (const [index, part] of parts.entries()) {
    if (part.type === "image") {
      blocks.push({ type: "image", source: { type: "base64", media_type: part.mediaType, data: part.data } });
    } else if (part.type === "text") {
      if (part.text !== "") blocks.push({ type: "text", text: part.text });
    } else {
      const kept = await writePart(part, index, place);
      if (kept.file !== undefined) files.push(kept.file);
      blocks.push({ type: "text", text: kept.text });
    }
  }
  const texts = blocks.filter((block) => block.type === "text");
  const images = blocks.filter((block) => block.type === "image");
  const whole = texts.map(({ text }) => text).join("\n");
  if (whole.length <= limit) return { content: images.length === 0 ? whole : blocks, files };
  const bounded = await boundOutput(whole, limit, place);
  if (bounded.file !== undefined) files.push(bounded.file);
  return {
    content: images.length === 0 ? bounded.text : [{ type: "text", text: bounded.text }, ...images],
    files,
  };
}

async function writePart(
  { about, extension, bytes }: Extract<ResultPart, { type: "file" }>,
  index: number,
  { outputDirectory, callId }: OutputPlace,
): Promise<{ readonly text: string; readonly file?: string }> {
  const name = callId.replace(/[^\w-]/g, "_").slice(0, 100) || "output";
  const file = join(outputDirectory, `${name}-${index}.${extension}`);
  try {
    await mkdir(outputDirectory, { recursive: true, mode: 0o700 });
    await writeFile(file, bytes, { mode: 0o600 });
    return { text: `[${about}: kept in ${file}]`, file };
  } catch (error) {
    return { text: `[${about}: it cannot be shown, and could not be kept: ${messageOf(error)}]` };
  }
}
