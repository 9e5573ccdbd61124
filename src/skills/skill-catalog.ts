import type { Diagnostic } from "../foundation/diagnostic.ts";
import { isRecord } from "../foundation/json-record.ts";
import { nearestName } from "../foundation/nearest-name.ts";
import { findForeignWriters, unsafeManagedDiagnostic } from "../settings/load-settings.ts";
import type { PlainSettings } from "../settings/plain-settings.ts";
import { createSkillFileLoader, type LoadedSkills } from "./create-skill-file-loader.ts";
import type { Skill } from "./skill.ts";
import { type SkillPlacesInput, skillPlaces } from "./skill-places.ts";

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
      return { type: "unknown", ...(nearest === undefined ? {} : { nearest }) };
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
  const isSame = winner?.source.scope === loser.source.scope && winner.source.kind === loser.source.kind;
  return {
    severity: isSame ? "warning" : "note",
    code: "same-name",
    file: loser.source.file,
    message: `The name \`${loser.name}\` is also used by ${winner?.source.file}, which wins; this file has no effect.`,
    advice: isSame ? "Rename or remove one of the two." : "Nothing to do if that is what you want.",
  };
}

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
      const { skills, diagnostics, files } = await withoutForeign(await loader.load(skillPlaces(options)));
      return createSkillCatalog({ skills, diagnostics, files, overrides: options.settings?.skillOverrides });
    },
  };
}

/** Skills of the organisation whose files others can write are no one's word. */
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
