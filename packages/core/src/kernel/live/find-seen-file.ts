// @io
import { open, realpath, stat } from "node:fs/promises";
import { loadBytes } from "../../tools/builtin/open-file.ts";
import type { SeenFile } from "../../tools/file-ledger.ts";

/** A file that a host has shown to the model, with its real path; undefined where it has changed since `mtimeMs` or cannot be read. */
export async function findSeenFile(
  written: string,
  mtimeMs: number,
): Promise<{ readonly path: string; readonly file: SeenFile } | undefined> {
  const path = await realpath(written).catch(() => undefined);
  const stats = path === undefined ? undefined : await stat(path).catch(() => undefined);
  if (path === undefined || stats?.isFile() !== true) return undefined;
  if (Math.floor(stats.mtimeMs) > Math.floor(mtimeMs)) return undefined;
  await using handle = await open(path, "r");
  const loaded = await loadBytes(handle.fd, await handle.stat());
  if (loaded === undefined) return undefined;
  return { path, file: { digest: loaded.digest, mtimeMs: loaded.stats.mtimeMs, partial: false } };
}
