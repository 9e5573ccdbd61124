// @io
import { readFile } from "node:fs/promises";
import { readChildMeta } from "./child-meta.ts";

/** What is beside a child's transcript; undefined when there is no such child. */
export async function loadChildMeta(file: string): Promise<ReturnType<typeof readChildMeta>> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  return text === undefined ? undefined : readChildMeta(text);
}
