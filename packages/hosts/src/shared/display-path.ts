import { posix, win32 } from "node:path";

export interface DisplayPlaces {
  readonly cwd: string;
  readonly home: string;
  readonly platform: string;
}

/** A file as a person would type it: from here, from home, or in full. */
export function displayPath(file: string, { cwd, home, platform }: DisplayPlaces): string {
  const path = platform === "win32" ? win32 : posix;
  if (!path.isAbsolute(file)) return file;
  if (isInside(file, cwd, path.sep)) return path.relative(cwd, file);
  return isInside(file, home, path.sep) ? `~${path.sep}${path.relative(home, file)}` : file;
}

function isInside(file: string, folder: string, separator: string): boolean {
  return folder.length > 1 && file.startsWith(folder.endsWith(separator) ? folder : folder + separator);
}
