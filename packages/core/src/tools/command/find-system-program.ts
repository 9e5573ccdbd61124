// @io
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { join } from "node:path";

const systemFolders = ["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"];

/** The system's own program of a name; never one on the PATH, where a folder of the project could be. */
export async function findSystemProgram(name: string): Promise<string | undefined> {
  for (const folder of systemFolders) {
    const file = join(folder, name);
    const isThere = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return file;
  }
  return undefined;
}
