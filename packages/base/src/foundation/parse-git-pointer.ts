/**
 * The path in a file by which git points from one folder to another: a gitfile, with the sign `gitdir: `, or the `gitdir` and
 * `commondir` of a linked worktree, without one. Git takes line ends off and nothing else in some of them and all white space in
 * others; a path that the two ways read differently is undefined.
 */
export function parseGitPointer(text: string, sign: "gitdir: " | ""): string | undefined {
  if (!text.startsWith(sign)) return undefined;
  const path = text.slice(sign.length).replace(/[\r\n]+$/, "");
  return path === "" || path !== path.trim() || path.includes("\0") ? undefined : path;
}
