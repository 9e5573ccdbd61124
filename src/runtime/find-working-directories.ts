import { isAbsolute, join, resolve } from "node:path";
import { findRealPath } from "../tools/find-real-path.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/** The project and the folders added to it, as written and with links followed, because calls are judged by both. */
export async function findWorkingDirectories(
  world: Pick<RuntimeContext, "discovered" | "additionalDirectories">,
): Promise<readonly string[]> {
  const { paths, settings } = world.discovered;
  const fromSettings = settings.settings.permissions.additionalDirectories.map(({ directory, source }) =>
    directory === "~" || directory.startsWith("~/")
      ? join(paths.home, directory.slice(1))
      : resolve(source.anchor, directory),
  );
  const folders = [paths.cwd, ...world.additionalDirectories, ...fromSettings].filter(isAbsolute);
  const real = await Promise.all(folders.map((folder) => findRealPath(folder)));
  return [...new Set([...folders, ...real])];
}
