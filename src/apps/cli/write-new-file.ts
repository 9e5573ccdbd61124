import { randomUUID } from "node:crypto";
import { link, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** Writes a whole file or nothing. Answers "exists" instead of replacing a file, unless that is wanted. */
export async function writeNewFile(
  file: string,
  text: string,
  { replaces }: { readonly replaces: boolean },
): Promise<"written" | "exists"> {
  await mkdir(dirname(file), { recursive: true });
  const draft = `${file}.${randomUUID()}.draft`;
  try {
    await writeFile(draft, text, { flag: "wx" });
    if (replaces) await rename(draft, file);
    else await link(draft, file);
    return "written";
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return "exists";
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}
