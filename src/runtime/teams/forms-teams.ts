import { readEnvironment } from "../../settings/read-environment.ts";
import type { MergedSettings } from "../../settings/settings-layer.ts";
import { readTeamSettings } from "../../teams/team-settings.ts";

/** Whether named agents form a team, by the environment and settings of a folder. */
export function formsTeams(
  process: Readonly<Record<string, string | undefined>>,
  { env, plain: settings }: Pick<MergedSettings, "env" | "plain">,
): boolean {
  const environment = { ...process, ...Object.fromEntries(env) };
  const { options: variables } = readEnvironment(environment);
  return readTeamSettings({ option: undefined, environment, variables, settings }) !== undefined;
}
