import { defaultStyle, loadOutputStyles } from "@retinue/config/instructions/load-output-styles.ts";
import type { ProjectFacts } from "./project-facts.ts";

/** What the setting `outputStyle` can be in a folder, each with what it is for; the first changes nothing. */
export async function listOutputStyles({
  discovered,
}: Pick<ProjectFacts, "discovered">): Promise<ReadonlyMap<string, string>> {
  const { styles } = await loadOutputStyles(discovered.paths, {});
  return new Map([
    [defaultStyle, "answers as always"],
    ...styles.map(({ name, description, scope }): [string, string] => [
      name,
      [description, scope].filter((part) => part !== "").join(" · "),
    ]),
  ]);
}
