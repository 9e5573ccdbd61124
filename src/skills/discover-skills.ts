import type { PlainSettings } from "../settings/plain-settings.ts";
import { createSkillFileLoader } from "./load-skill-files.ts";
import { createSkillCatalog, type SkillCatalog } from "./skill-catalog.ts";
import { type SkillPlacesInput, skillPlaces } from "./skill-places.ts";

export interface DiscoverSkillsOptions extends SkillPlacesInput {
  readonly settings?: Pick<PlainSettings, "skillOverrides" | "strictPluginOnlyCustomization">;
}

/** Skills that are looked up again at each read, so that a changed file counts at once. */
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
      const { skills, problems, files } = await loader.load(skillPlaces(options));
      return createSkillCatalog({ skills, problems, files, overrides: options.settings?.skillOverrides });
    },
  };
}
