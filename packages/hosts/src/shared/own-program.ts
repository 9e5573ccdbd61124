import { userInfo } from "node:os";
import { fileURLToPath } from "node:url";
import type { CliHost } from "./cli-host.ts";

/** The command that runs now: from the built program it is two folders up, from the source four. */
export function ownProgram(): { readonly file: string; readonly arguments: readonly string[] } {
  const isBuilt = /[\\/]dist[\\/]cli[\\/]/.test(fileURLToPath(import.meta.url));
  const path = isBuilt ? "../../bin/retinue.js" : "../../../../bin/retinue.js";
  return { file: process.execPath, arguments: [fileURLToPath(new URL(path, import.meta.url))] };
}

/** The person at this computer. */
export function userName({ environment }: CliHost): string {
  try {
    return userInfo().username;
  } catch {
    return environment["USER"] ?? "unknown";
  }
}
