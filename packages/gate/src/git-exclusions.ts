import { posix } from "node:path";
import { matchesName } from "./covers-path.ts";
import type { PermissionPolicy, PolicyRule } from "./permission-policy.ts";
import type { UnreadableName } from "./shell/model.ts";

/**
 * The paths that rules keep from being read, as pathspecs that leave them out of what git shows of a repository.
 * Empty where no rule can speak of a path in it, or in another working tree of it.
 */
export function gitExclusions(
  policy: Pick<PermissionPolicy, "deny" | "ask" | "home" | "workingDirectories" | "platform">,
  repository: string,
  otherTrees: readonly string[] = [],
): readonly string[] {
  const magic =
    policy.platform === "darwin" || policy.platform === "win32"
      ? "top,exclude,glob,icase"
      : "top,exclude,glob";
  const patterns = [...policy.deny, ...policy.ask].flatMap((rule) => [
    ...patternsIn(rule, policy, repository),
    // A rule about the whole of another tree, or what is around it, does not speak of places in it.
    ...otherTrees.flatMap((tree) => patternsIn(rule, policy, tree).filter((pattern) => pattern !== "**")),
  ]);
  return [...new Set(patterns)].flatMap((pattern) => [`:(${magic})${pattern}`, `:(${magic})${pattern}/**`]);
}

/**
 * The names by which everything that rules keep from being read can be left out of a search, at any depth and so perhaps
 * more than the rules speak of. Empty where there are no such rules, or where one of them cannot be said by names.
 */
export function unreadableNames({
  deny,
  ask,
  platform,
}: Pick<PermissionPolicy, "deny" | "ask" | "platform">): readonly UnreadableName[] {
  // Programs compare names letter by letter, and here two names may be one file.
  if (platform === "darwin" || platform === "win32") return [];
  const names: UnreadableName[] = [];
  for (const { rule } of [...deny, ...ask]) {
    if (rule.canonicalTool !== "Read" || rule.specifier.type !== "path") continue;
    const segments = rule.specifier.pattern.split("/").filter((segment) => segment !== "" && segment !== ".");
    const last = segments.findLastIndex((segment) => !/^\*+$/.test(segment));
    const name = segments[last];
    if (name === undefined || !/^[\w.@%+=,~*?-]+$/.test(name) || name === "..") return [];
    names.push({ name, ...(last < segments.length - 1 && { isFolder: true as const }) });
  }
  return names;
}

function patternsIn(
  { rule, anchor }: PolicyRule,
  { home, workingDirectories }: Pick<PermissionPolicy, "home" | "workingDirectories">,
  repository: string,
): readonly string[] {
  const { specifier } = rule;
  if (rule.canonicalTool !== "Read" || specifier.type !== "path") return [];
  const base = { root: "/", home, settings: anchor, cwd: workingDirectories[0] ?? repository }[
    specifier.anchor
  ];
  const segments = posix
    .normalize(specifier.pattern)
    .split("/")
    .filter((segment) => segment !== "" && segment !== ".");
  // A name alone, or a folder with all it holds, is meant at any depth.
  const floats = segments.length === 1 || (segments.length === 2 && segments[1] === "**");
  const name = segments.join("/").replace(/\/\*\*$/, "");
  if (segments[0] === ".." || name === "") return ["**"];
  if (isBelow(base, repository)) {
    const inside = posix.relative(repository, base);
    const start = inside === "" ? "" : `${inside}/`;
    return floats ? [`${start}**/${name}`, `${start}${name}`] : [`${start}${name}`];
  }
  if (!isBelow(repository, base)) return [];
  if (floats) return [`**/${name}`, name];
  return remaining(segments, posix.relative(base, repository).split("/"));
}

/** What is left of a pattern when the first folders of a path have been taken off. */
function remaining(pattern: readonly string[], folders: readonly string[]): readonly string[] {
  const [first, ...rest] = pattern;
  const [folder, ...deeper] = folders;
  if (first === undefined) return ["**"];
  if (folder === undefined) return [pattern.join("/").replace(/\/\*\*$/, "")];
  if (first === "**") return [`**/${rest.join("/")}`.replace(/\/$/, ""), ...remaining(rest, folders)];
  return matchesName(first, folder) ? remaining(rest, deeper) : [];
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
