// @io
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { limitText } from "./limit-text.ts";
import type { ToolContext } from "./tool.ts";

export interface BoundedOutput {
  readonly text: string;
  /** Where the whole text is, when it was too long. */
  readonly file?: string;
}

/** Bounds a tool's text for the model; what does not fit is kept whole in a file that the agents of the session can read. */
export async function boundOutput(
  text: string,
  limit: number,
  context: Pick<ToolContext, "outputDirectory" | "callId">,
): Promise<BoundedOutput> {
  if (text.length <= limit) return { text };
  // Ids come from a provider and may hold anything.
  const file = join(
    context.outputDirectory,
    `${context.callId.replace(/[^\w-]/g, "_").slice(0, 100) || "output"}.txt`,
  );
  try {
    await mkdir(context.outputDirectory, { recursive: true, mode: 0o700 });
    await writeFile(file, text, { mode: 0o600 });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { text: limitText(text, limit, `; the whole could not be kept: ${why}`).text };
  }
  return { text: limitText(text, limit, `; all of it is in ${file}`).text, file };
}
