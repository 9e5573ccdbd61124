// @io
import { open } from "node:fs/promises";
import { type ImageReading, maxImageBytes, readImageBlock } from "../../tools/read-image-block.ts";

/** An image for a prompt, from a file. Throws where it cannot be read. */
export async function loadPromptImage(file: string): Promise<ImageReading> {
  await using handle = await open(file);
  const { size } = await handle.stat();
  if (size > maxImageBytes)
    return {
      type: "unusable",
      why: `has ${size} bytes; images of at most ${maxImageBytes} bytes can be shown.`,
    };
  return readImageBlock(await handle.readFile());
}

/** The same from bytes, such as those of a clipboard. */
export function promptImageOf(bytes: Buffer): ImageReading {
  return readImageBlock(bytes);
}
