import { posix, win32 } from "node:path";
import type { Plugin } from "../plugins/plugin.ts";
import type { Paths, ScopedDirectories } from "../settings/paths.ts";
import type { PlainSettings } from "../settings/plain-settings.ts";
import type { SkillPlugin, SkillScope, SkillSource } from "./skill.ts";

/** A folder or file that may hold skills or commands. Nothing here says that it exists. */
export interface SkillPlace {
  readonly scope: SkillScope;
  readonly kind: SkillSource["kind"];
  readonly path: string;
  /** Links that lead out of this folder are not followed; absent where the person's own files are. */
  readonly within?: string;
  readonly plugin?: SkillPlugin;
  /** A manifest names it, so that its absence is worth a word. */
  readonly isNamed?: true;
  /** Folders in it that carry a plugin's mark are plugins, not skills. */
  readonly mayHoldPlugins?: true;
  /** Only the file itself counts, not the folders beside it. */
  readonly isRoot?: true;
}

export interface SkillPlacesInput {
  readonly paths: Paths;
  readonly plugins?: readonly Plugin[];
  readonly settings?: Pick<PlainSettings, "strictPluginOnlyCustomization">;
  /** Absolute folders that the session was given beside its own. */
  readonly additionalDirectories?: readonly string[];
  /** Absolute folders below the project in which files were touched; skills that lie there count from then on. */
  readonly touchedDirectories?: readonly string[];
  /** Which of a person's files count; the organisation's always do. All, when absent. */
  readonly settingSources?: readonly ("user" | "project" | "local")[];
}

/**
 * Every place of skills, the stronger first: managed, user, project, plugins, and of each skills before commands. The rank
 * comes first, so that no repository takes the name of a command that a person keeps at home.
 */
export function skillPlaces(input: SkillPlacesInput): SkillPlace[] {
  const { paths, plugins = [] } = input;
  const enabled = plugins.filter(({ enabled: isEnabled }) => isEnabled);
  const { skills, commands } = paths;
  const wants = (source: "user" | "project"): boolean =>
    !isPluginOnly(input.settings) && (input.settingSources?.includes(source) ?? true);
  return [
    { scope: "managed", kind: "skill", path: skills.managed },
    { scope: "managed", kind: "command", path: commands.managed },
    ...(wants("user") ? userPlaces(paths) : []),
    ...(wants("project")
      ? [...projectPlaces(skills, "skill", input), ...projectPlaces(commands, "command", input)]
      : []),
    ...enabled.flatMap(pluginPlaces),
  ];
}

function userPlaces({ skills, commands }: Paths): SkillPlace[] {
  return [
    { scope: "user", kind: "skill", path: skills.user, mayHoldPlugins: true },
    { scope: "user", kind: "command", path: commands.user },
  ];
}

function projectPlaces(
  directories: ScopedDirectories,
  kind: SkillSource["kind"],
  { paths, additionalDirectories = [], touchedDirectories = [] }: SkillPlacesInput,
): SkillPlace[] {
  const path = paths.cwd.includes("\\") ? win32 : posix;
  const below = (folder: string): string =>
    path.join(folder, ".claude", kind === "skill" ? "skills" : "commands");
  const place = (at: string, within: string): SkillPlace => ({ scope: "project", kind, path: at, within });
  const known = new Set([...directories.project, directories.user]);
  const nested = touchedDirectories
    .flatMap((folder) => foldersBetween(folder, paths.projectRoot, path))
    .map(below)
    .filter((folder) => !known.has(folder));
  return [
    ...directories.project.map((folder) => place(folder, paths.projectRoot)),
    ...additionalDirectories.map((folder) => place(below(folder), folder)),
    ...[...new Set(nested)].map((folder) => place(folder, paths.projectRoot)),
  ];
}

/** From a folder up to the project's root, without the root; nothing for a folder outside of it. */
function foldersBetween(folder: string, root: string, path: typeof posix): string[] {
  const folders: string[] = [];
  for (let at = path.resolve(folder); at !== root; at = path.dirname(at)) {
    if (path.dirname(at) === at) return [];
    folders.push(at);
  }
  return folders;
}

/** An organisation may allow no skills but its own and those of plugins. */
function isPluginOnly(settings: SkillPlacesInput["settings"]): boolean {
  const only = settings?.strictPluginOnlyCustomization;
  return only === true || (Array.isArray(only) && only.includes("skills"));
}

/** `skills/`, what the manifest adds, a SKILL.md in the root; `commands/`, unless the manifest names others. */
function pluginPlaces({ name, root, manifest, marketplace }: Plugin): SkillPlace[] {
  const path = root.includes("\\") ? win32 : posix;
  const place = (kind: SkillSource["kind"], inner: string, isNamed: boolean): SkillPlace => ({
    scope: "plugin",
    kind,
    path: path.join(root, inner),
    within: root,
    plugin: { name, root, ...(marketplace === undefined ? {} : { marketplace }) },
    ...(isNamed ? { isNamed: true as const } : {}),
  });
  const added = (manifest.skills?.paths ?? []).filter((inner) => inner !== "skills");
  const commands = manifest.commands?.paths;
  return [
    place("skill", "skills", false),
    ...added.map((inner) => place("skill", inner, true)),
    { ...place("skill", ".", false), isRoot: true },
    ...(commands ?? ["commands"]).map((inner) => place("command", inner, commands !== undefined)),
  ];
}
