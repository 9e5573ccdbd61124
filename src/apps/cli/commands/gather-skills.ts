import { resolve } from "node:path";
import { discoverSkills, type SkillCatalog } from "../../../skills/skill-catalog.ts";
import { type GatheredSession, type GatherOptions, gatherSession } from "../gather-session.ts";
import type { CommandContext } from "../session-options.ts";

/** The skills that a session with these options would have. */
export async function gatherSkills(
  context: CommandContext,
  options: GatherOptions = {},
): Promise<{ readonly session: GatheredSession; readonly catalog: SkillCatalog }> {
  const session = await gatherSession(context, options);
  const { paths, plugins, settings } = session.discovered;
  const { addDir, settingSources } = context.session;
  const catalog = await discoverSkills({
    paths,
    plugins,
    settings: settings.settings.plain,
    additionalDirectories: (addDir ?? []).map((folder) => resolve(context.host.cwd, folder)),
    ...(settingSources === undefined ? {} : { settingSources }),
  });
  return { session, catalog };
}
