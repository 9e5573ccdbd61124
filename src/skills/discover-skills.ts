import type { Diagnostic } from "../foundation/diagnostic.ts";
import { findForeignWriters, unsafeManagedDiagnostic } from "../settings/find-foreign-writers.ts";
import type { PlainSettings } from "../settings/plain-settings.ts";
import type { Skill } from "./skill.ts";
import { createSkillCatalog, type SkillCatalog } from "./skill-catalog.ts";
import { createSkillFileLoader, type LoadedSkills } from "./skill-file-loader.ts";
import { type SkillPlacesInput, skillPlaces } from "./skill-places.ts";

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
