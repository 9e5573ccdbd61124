/** Why nobody removes a path without being asked, in any mode; undefined for ordinary paths. */
export function criticalityOf(
  path: string,
  {
    workingDirectories,
    homes,
  }: { readonly workingDirectories: readonly string[]; readonly homes: readonly string[] },
): string | undefined {
  const bare = withoutGlob(path);
  if (bare === "/" || /^\/?[A-Za-z]:\/?$/.test(bare)) return "the whole file system";
  if (systemFolders.has(bare.toLowerCase())) return "a folder of the system";
  if (/^\/(?:home|Users)\/[^/]+$/.test(bare)) return "a home directory";
  if (homes.some((home) => isSameOrAbove(bare, home))) return "the home directory";
  if (workingDirectories.some((directory) => isSameOrAbove(bare, directory))) return "the project itself";
  if (bare.endsWith("/.git")) return "the history of a repository";
  return undefined;
}

/** `/x/*` empties `/x`. */
function withoutGlob(path: string): string {
  const bare = path
    .replace(/\/(?:\.?\*+|\.\[[^\]]*\]\*|\{[^}]*\*[^}]*\}|\.\?\?\*)(?=\/?$)/, "")
    .replace(/\/+$/, "");
  return bare === "" ? "/" : bare;
}

function isSameOrAbove(path: string, other: string): boolean {
  return path === other || other.startsWith(path === "/" ? "/" : `${path}/`);
}

const systemFolders: ReadonlySet<string> = new Set(
  `/bin /boot /dev /etc /home /lib /lib32 /lib64 /media /mnt /opt /proc /root /run /sbin /srv /sys /usr /usr/bin /usr/lib
  /usr/local /usr/sbin /usr/share /var /var/lib /var/log /users /system /library /applications /volumes /private
  /private/etc /private/var /c /c/windows /c/users`.split(/\s+/),
);
