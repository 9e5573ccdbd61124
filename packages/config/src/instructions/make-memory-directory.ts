// @io
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { findRealPath } from "@retinue/base/foundation/find-real-path.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { MemoryPlace } from "./memory-place.ts";

/** Makes an agent's memory directory where there is none. A person's own is for them alone, a local one out of git. */
export async function makeMemoryDirectory({ scope, directory }: MemoryPlace): Promise<void> {
  if ((await findRealPath(directory)) !== directory) {
    throw new RetinueError(
      "memory-moved",
      `The memory directory ${directory} now points to another place, so it is not used.`,
    );
  }
  await mkdir(directory, { recursive: true, ...(scope === "user" ? { mode: 0o700 } : {}) });
  if (scope === "local") {
    // The file ignores itself too; one that exists already belongs to its author and stays as it is.
    const folder = dirname(directory);
    try {
      await writeFile(join(folder, ".gitignore"), "*\n", { flag: "wx" });
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    }
  }
}
