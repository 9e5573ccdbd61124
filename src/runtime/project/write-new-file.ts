// @io
import { link, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { createTemporaryNotes, temporaryName } from "../../storage/create-temporary-notes.ts";

/** Writes a whole file or nothing; `notes` is where half-written files are noted. Answers "exists" instead of replacing a file, unless that is wanted. */
export async function writeNewFile(
  file: string,
  text: string,
  { replaces, notes }: { readonly replaces: boolean; readonly notes: string },
): Promise<"written" | "exists"> {
  await mkdir(dirname(file), { recursive: true });
  const draft = join(dirname(file), temporaryName(basename(file)));
  const forget = createTemporaryNotes(notes)(draft);
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
    forget();
  }
}
