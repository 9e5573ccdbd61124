// @io
import { link, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileError } from "@retinue/base/foundation/file-error.ts";
import { makeFolder } from "@retinue/base/foundation/find-working-folder.ts";
import { createTemporaryNotes, temporaryName } from "@retinue/base/storage/create-temporary-notes.ts";

/** Writes a whole file or nothing, or throws a RetinueError that says why; `notes` is where half-written files are noted. Answers "exists" instead of replacing a file, unless that is wanted. */
export async function writeNewFile(
  file: string,
  text: string,
  { replaces, notes }: { readonly replaces: boolean; readonly notes: string },
): Promise<"written" | "exists"> {
  await makeFolder(dirname(file)).catch((error: unknown) => {
    throw fileError("write", file, error);
  });
  const draft = join(dirname(file), temporaryName(basename(file)));
  const forget = createTemporaryNotes(notes)(draft);
  try {
    await writeFile(draft, text, { flag: "wx" });
    if (replaces) await rename(draft, file);
    else await link(draft, file);
    return "written";
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return "exists";
    throw fileError("write", file, error);
  } finally {
    await rm(draft, { force: true });
    forget();
  }
}
