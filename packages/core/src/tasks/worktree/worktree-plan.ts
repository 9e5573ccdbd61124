import { isAbsolute, join, normalize, relative, sep } from "node:path";

export interface WorktreeSettings {
  /** `current` (HEAD and all uncommitted changes) when absent; `fresh` is the default branch. */
  readonly baseRef?: "fresh" | "head" | "current";
  /** Ignored folders of the repository that the worktree shares by a link. */
  readonly symlinkDirectories?: readonly string[];
  /** The folder for worktrees; relative to the repository, `~/` is the home folder. */
  readonly location?: string;
}

export interface WorktreePlace {
  readonly agentId: string;
  readonly agentName: string;
  /** In place of what would be made of the agent. */
  readonly own?: { readonly name: string; readonly branch: string } | undefined;
  readonly settings: WorktreeSettings;
  /** The root of the repository's main working tree, real. */
  readonly repository: string;
  /** Where git keeps the repository's data, real. */
  readonly gitDirectory: string;
  readonly home: string | undefined;
}

export interface PlannedWorktree {
  readonly type: "planned";
  readonly name: string;
  readonly branch: string;
  /** The folder that holds worktrees. */
  readonly folder: string;
  readonly path: string;
  readonly links: readonly string[];
}

export type WorktreePlan = PlannedWorktree | { readonly type: "refused"; readonly reason: string };

const defaultFolder = join(".claude", "worktrees");

/** Decides what a worktree is called and where it is. The whole id is part of the name, so no two agents meet. */
export function planWorktree(place: WorktreePlace): WorktreePlan {
  const { agentId, agentName, own, settings, repository, gitDirectory } = place;
  if (own === undefined && !/^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$/.test(agentId)) {
    return refused(
      `the agent id ${JSON.stringify(agentId)} cannot name a branch; use letters, digits, - and _`,
    );
  }
  const folder = folderOf(place);
  if (folder === undefined) return refused("worktree.location begins with ~, but the home folder is unknown");
  if (contains(folder, repository) && contains(repository, folder)) {
    return refused("worktree.location is the repository itself; choose a folder in it or beside it");
  }
  if (contains(gitDirectory, folder)) {
    return refused(`worktree.location leads into git's own data, ${gitDirectory}; choose another folder`);
  }
  const strange = settings.symlinkDirectories?.find((entry) => ownPath(entry) === undefined);
  if (strange !== undefined) {
    const entry = JSON.stringify(strange);
    return refused(`worktree.symlinkDirectories names ${entry}; it takes folders inside the repository only`);
  }
  const name = own?.name ?? `${slug(agentName)}-${agentId}`;
  return {
    type: "planned",
    name,
    branch: own?.branch ?? `retinue/${name}`,
    folder,
    path: join(folder, name),
    links: [...new Set(settings.symlinkDirectories?.flatMap((entry) => ownPath(entry) ?? []))],
  };
}

/** The lines of an exclude file that keep a folder for worktrees out of the status of those working trees it lies in. */
export function folderExcludes(roots: readonly string[], folder: string): readonly string[] {
  const within = roots.filter((root) => root !== folder && contains(root, folder));
  return [...new Set(within.map((root) => `${excludePattern(relative(root, folder))}/`))];
}

/** A line of an exclude file that means exactly this path, relative to the root and with this system's separators. */
export function excludePattern(path: string): string {
  const escaped = path
    .split(sep)
    .join("/")
    .replace(/[\\*?[\]]/g, "\\$&");
  return `/${escaped.replace(/ +$/, (spaces) => "\\ ".repeat(spaces.length))}`;
}

export function contains(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

function folderOf({ settings, repository, home }: WorktreePlace): string | undefined {
  const location = settings.location ?? defaultFolder;
  const fromHome = /^~(?:[/\\](.*))?$/.exec(location);
  if (fromHome !== null) return home === undefined ? undefined : join(home, fromHome[1] ?? "");
  return isAbsolute(location) ? normalize(location) : join(repository, location);
}

/** The path without detours, or undefined when it is not a folder below the root that may be shared. */
function ownPath(entry: string): string | undefined {
  if (entry.trim() === "" || isAbsolute(entry) || /[\0\n\r]/.test(entry)) return undefined;
  const path = normalize(entry).replace(/[/\\]+$/, "");
  const parts = path.split(sep);
  const leaves = path === "." || parts[0] === "..";
  return leaves || parts.some((part) => part.toLowerCase() === ".git") ? undefined : path;
}

function slug(name: string): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 40);
  return plain.replace(/^-+|-+$/g, "") || "agent";
}

function refused(reason: string): WorktreePlan {
  return { type: "refused", reason };
}
