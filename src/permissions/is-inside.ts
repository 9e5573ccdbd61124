/** Whether a path is one of the directories or below one; compared by whole names. */
export function isInside(path: string, directories: readonly string[]): boolean {
  return directories.some(
    (directory) =>
      path === directory || path.startsWith(directory.endsWith("/") ? directory : `${directory}/`),
  );
}
