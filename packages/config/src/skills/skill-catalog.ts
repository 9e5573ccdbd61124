// @io

import { existsSync } from "node:fs";
import { dirname, join, posix, relative, sep, win32 } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { escapeLine } from "@retinue/base/foundation/escape-control-tags.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { shorten } from "../agents/describe-agents.ts";
import type { Plugin } from "../plugins/plugin.ts";
import { findForeignWriters, unsafeManagedDiagnostic } from "../settings/load-settings.ts";
import type { Paths, ScopedDirectories } from "../settings/paths.ts";
import type { PlainSettings } from "../settings/plain-settings.ts";
import { findUntrustedFolders } from "../settings/trust-store.ts";
import { createSkillFileLoader, type LoadedSkills, type SkillPlace } from "./create-skill-file-loader.ts";
import type { Skill, SkillSource } from "./skill.ts";

export type SkillSearch =
  | { readonly type: "found"; readonly skill: Skill }
  | { readonly type: "unknown"; readonly nearest?: string };

/** All skills of a session at one moment. */
export interface SkillCatalog {
  /** Those that count, by name. */
  list(): readonly Skill[];
  /** By the whole name; a name is looked up and never taken for a path. */
  find(name: string): SkillSearch;
  /** Names of skills that settings list without their description. */
  readonly nameOnly: ReadonlySet<string>;
  /** Skills that lost their name to a stronger one. */
  readonly shadowed: readonly Skill[];
  readonly diagnostics: readonly Diagnostic[];
  /** Every file that was read, with links resolved. */
  readonly files: readonly string[];
}

/** Of skills with one name the first wins; then settings have their say. */
export function createSkillCatalog(input: {
  readonly skills: readonly Skill[];
  readonly overrides?: unknown;
  readonly diagnostics?: readonly Diagnostic[];
  readonly files?: readonly string[];
}): SkillCatalog {
  const winners = new Map<string, Skill>();
  const shadowed: Skill[] = [];
  for (const skill of input.skills) {
    if (winners.has(skill.name)) shadowed.push(skill);
    else winners.set(skill.name, skill);
  }
  const { skills, nameOnly } = overrideSkills([...winners.values()], input.overrides);
  const byName = new Map(skills.map((skill) => [skill.name, skill]));
  const sorted = [...skills].sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    list: () => sorted,
    find(name) {
      const skill = byName.get(name);
      if (skill !== undefined) return { type: "found", skill };
      const nearest = nearestName(name, byName.keys());
      return { type: "unknown", nearest };
    },
    nameOnly,
    shadowed,
    diagnostics: [
      ...(input.diagnostics ?? []),
      ...shadowed.map((skill) => shadowedBy(skill, winners.get(skill.name))),
    ],
    files: input.files ?? [],
  };
}

/** Between scopes and nested folders the stronger one is meant to win; inside one scope it is likely a mistake. */
function shadowedBy(loser: Skill, winner: Skill | undefined): Diagnostic {
  const isShared = (skill: Skill | undefined): boolean => sharedFolder.test(skill?.source.file ?? "");
  const isSame =
    winner?.source.scope === loser.source.scope &&
    winner.source.kind === loser.source.kind &&
    isShared(winner) === isShared(loser);
  return {
    severity: isSame ? "warning" : "note",
    code: "same-name",
    file: loser.source.file,
    message: `The name \`${loser.name}\` is also used by ${winner?.source.file}, which wins; this file has no effect.`,
    advice: isSame ? "Rename or remove one of the two." : "Nothing, if that is what you want.",
  };
}

/** Skills that all products share, which rank below our own. */
const sharedFolder = /[\\/]\.agents[\\/]skills[\\/]/;

interface OverriddenSkills {
  readonly skills: readonly Skill[];
  /** Those that are in the model's list without a description. */
  readonly nameOnly: ReadonlySet<string>;
}

/** What `skillOverrides` of settings makes of the skills that were found. */
function overrideSkills(skills: readonly Skill[], overrides: unknown): OverriddenSkills {
  const wordOf = (name: string): unknown =>
    isRecord(overrides) && Object.hasOwn(overrides, name) ? overrides[name] : undefined;
  return {
    skills: skills.flatMap((skill) => {
      const word = wordOf(skill.name);
      if (word === "off") return [];
      return [word === "user-invocable-only" ? { ...skill, disableModelInvocation: true } : skill];
    }),
    nameOnly: new Set(skills.map(({ name }) => name).filter((name) => wordOf(name) === "name-only")),
  };
}

export interface DiscoverSkillsOptions extends SkillPlacesInput {
  readonly settings?: Pick<PlainSettings, "skillOverrides" | "strictPluginOnlyCustomization">;
}

/** Skills that are looked up again at each read, so that a changed file counts immediately. */
export interface SkillReader {
  read(options: DiscoverSkillsOptions): Promise<SkillCatalog>;
}

/** Reads every place that can hold skills, once. */
export function discoverSkills(options: DiscoverSkillsOptions): Promise<SkillCatalog> {
  return createSkillReader().read(options);
}

export function createSkillReader(): SkillReader {
  const loader = createSkillFileLoader();
  return {
    async read(options) {
      const places = await withTrust(skillPlaces(options), options.paths);
      const { skills, diagnostics, files } = await withoutForeign(await loader.load(places));
      return createSkillCatalog({ skills, diagnostics, files, overrides: options.settings?.skillOverrides });
    },
  };
}

/** Folders that were added, and repositories below the project, are judged by their own trust. */
async function withTrust(places: readonly SkillPlace[], paths: Paths): Promise<readonly SkillPlace[]> {
  const folderOf = ({ path }: SkillPlace): string => dirname(dirname(path));
  const own = new Set([
    ...paths.skills.project,
    ...sharedFolders(paths.skills.project, paths),
    ...paths.commands.project,
  ]);
  const others = places.filter(({ scope, path }) => scope === "project" && !own.has(path));
  if (others.length === 0) return places;
  const untrusted = await findUntrustedFolders([...new Set(others.map(folderOf))], paths);
  return places.map((place) =>
    others.includes(place) && untrusted.has(folderOf(place)) ? { ...place, untrusted: true } : place,
  );
}

/** Skills of the organisation whose files others can write carry no authority. */
async function withoutForeign(loaded: LoadedSkills): Promise<LoadedSkills> {
  const diagnostics: Diagnostic[] = [];
  const skills: Skill[] = [];
  for (const skill of loaded.skills) {
    const { scope, file } = skill.source;
    const why = scope === "managed" ? await findForeignWriters(file) : undefined;
    if (why === undefined) skills.push(skill);
    else diagnostics.push(unsafeManagedDiagnostic(file, why, "is not used"));
  }
  return { ...loaded, skills, diagnostics: [...loaded.diagnostics, ...diagnostics] };
}

/** Folders of a project with skills of their own, found as files in or below them are touched. */
export interface NestedFolders {
  /** Whether this led to a folder with skills that was not known before. */
  touch(paths: readonly string[]): boolean;
  found(): readonly string[];
}

/** More than anyone keeps; each is read again with every look at the skills. */
const maxFolders = 100;

/**
 * Looks at each folder between a touched file and the project's root once. What lies in folders that other programs fill,
 * such as `node_modules` or `.git`, was not put there for agents that work here.
 */
export function createNestedFolders(root: string): NestedFolders {
  const seen = new Set<string>();
  const found: string[] = [];
  const look = (folder: string): void => {
    seen.add(folder);
    const places = [".claude/skills", ".agents/skills", ".claude/commands"];
    const hasSkills = places.some((place) => existsSync(join(folder, place)));
    if (hasSkills && found.length < maxFolders) found.push(folder);
  };
  return {
    touch(paths) {
      const before = found.length;
      for (const folder of paths.flatMap((path) => foldersAbove(path, root)))
        if (!seen.has(folder)) look(folder);
      return found.length > before;
    },
    found: () => found,
  };
}

function foldersAbove(path: string, root: string): readonly string[] {
  const way = relative(root, dirname(path)).split(sep);
  if (way.some((part) => part === "" || part === "node_modules" || part.startsWith("."))) return [];
  return way.map((_, index) => join(root, ...way.slice(0, index + 1)));
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
 * Every place of skills, the stronger first: managed, user, project, plugins, and of each skills before commands, those of
 * `.claude` before those that all products share. The rank
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

function userPlaces({ skills, commands, home }: Paths): SkillPlace[] {
  const path = home.includes("\\") ? win32 : posix;
  return [
    { scope: "user", kind: "skill", path: skills.user, mayHoldPlugins: true },
    { scope: "user", kind: "skill", path: path.join(home, ".agents", "skills") },
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
  const shared = (folders: readonly string[]): readonly string[] =>
    kind === "skill" ? sharedFolders(folders, paths) : [];
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
    ...shared(directories.project).map((folder) => place(folder, paths.projectRoot)),
    ...additionalDirectories.flatMap((folder) => shared([below(folder)]).map((at) => place(at, folder))),
    ...shared([...new Set(nested)]).map((folder) => place(folder, paths.projectRoot)),
  ];
}

/** The folders `.agents/skills` beside folders of our own; what lies at home is the person's. */
function sharedFolders(own: readonly string[], { home }: Pick<Paths, "home">): readonly string[] {
  const path = home.includes("\\") ? win32 : posix;
  return own
    .map((folder) => path.join(path.dirname(path.dirname(folder)), ".agents", "skills"))
    .filter((folder) => folder !== path.join(home, ".agents", "skills"));
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
    plugin: { name, root, marketplace },
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

export interface ListSkillsOptions {
  /** Tokens that fit into the model. */
  readonly contextWindow: number;
  /** The part of the window that the list may take; one hundredth when absent. */
  readonly budgetFraction?: number | undefined;
  /** The most characters of one description; 1,536 when absent. */
  readonly maxDescription?: number | undefined;
  /** Skills that are in the list without a description. */
  readonly nameOnly?: ReadonlySet<string>;
}

export interface SkillList {
  readonly text: string;
  /** How many skills did not fit even by their names. */
  readonly left: number;
}

const defaultFraction = 0.01;
const defaultDescription = 1536;
const charactersPerToken = 4;
/** A shorter description says nothing. */
const shortestDescription = 24;

/** What a model is informed of the skills that it may call, by name, inside a budget: whole, then shortened, then names. */
export function listSkills(skills: readonly Skill[], options: ListSkillsOptions): SkillList {
  const listed = skills
    .filter(({ disableModelInvocation }) => !disableModelInvocation)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const budget = Math.floor(
    options.contextWindow * (options.budgetFraction ?? defaultFraction) * charactersPerToken,
  );
  const entries = listed.map((skill) => entryOf(skill, options));
  const most = Math.max(0, ...entries.map(({ description }) => description.length));
  const limit = largestLimit(most, (cut) => lengthOf(entries, cut) <= budget);
  if (limit !== undefined) return { text: entries.map((entry) => lineOf(entry, limit)).join("\n"), left: 0 };
  const lines: string[] = [];
  let used = 0;
  for (const { name } of entries) {
    if (used + name.length + 3 > budget) break;
    used += name.length + 3;
    lines.push(`- ${name}`);
  }
  const left = entries.length - lines.length;
  const rest = `(${left} more are not listed; they can be called by their names)`;
  return { text: [...lines, ...(left === 0 ? [] : [rest])].join("\n"), left };
}

interface Entry {
  readonly name: string;
  readonly description: string;
}

function entryOf(skill: Skill, { nameOnly, maxDescription = defaultDescription }: ListSkillsOptions): Entry {
  if (nameOnly?.has(skill.name) === true) return { name: skill.name, description: "" };
  const { description, whenToUse, paths, argumentHint } = skill;
  const parts = [
    description,
    whenToUse,
    paths === undefined || paths.length === 0 ? undefined : `(for files ${paths.join(", ")})`,
    argumentHint === undefined ? undefined : `Arguments: ${argumentHint}`,
  ];
  const text = escapeLine(parts.filter((part) => part !== undefined).join(" "));
  return { name: skill.name, description: shorten(text, maxDescription) };
}

function lineOf({ name, description }: Entry, limit: number): string {
  const isCut = description.length > limit;
  if (description === "" || (isCut && limit < shortestDescription)) return `- ${name}`;
  return `- ${name}: ${shorten(description, limit)}`;
}

function lengthOf(entries: readonly Entry[], limit: number): number {
  return entries.reduce((sum, entry) => sum + lineOf(entry, limit).length + 1, 0);
}

/** All descriptions are cut at the same length, so that none is pushed out by a longer neighbour. */
function largestLimit(most: number, fits: (limit: number) => boolean): number | undefined {
  if (fits(most)) return most;
  if (!fits(0)) return undefined;
  let low = 0;
  let high = most;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}
