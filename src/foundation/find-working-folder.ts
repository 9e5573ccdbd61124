// @io
import { RetinueError } from "./retinue-error.ts";

/** The folder this process was started in; one that was removed meanwhile has no path any more. */
export function findWorkingFolder(): string {
  try {
    return process.cwd();
  } catch (error) {
    throw new RetinueError("working-folder-gone", "The folder this was started in has been removed.", {
      advice: "Change to a folder that is there, then run it again.",
      cause: error,
    });
  }
}
