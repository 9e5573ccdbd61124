// @io
import { readdirSync } from "node:fs";
import { refuseTeamName, type TeamConfig } from "../../teams/team-config.ts";
import { openTeamStore, type TeamPlaces } from "../../teams/team-store.ts";

export interface FoundTeam {
  readonly name: string;
  /** Absent where its file cannot be read. */
  readonly config?: TeamConfig;
  readonly problem?: string;
}

/** All teams on this machine, by name. */
export function findTeams(places: TeamPlaces): readonly FoundTeam[] {
  return namesIn(places.teams).flatMap((name): readonly FoundTeam[] => {
    try {
      const config = openTeamStore(places, name).config();
      return config === undefined ? [] : [{ name, config }];
    } catch (error) {
      return [{ name, problem: error instanceof Error ? error.message : String(error) }];
    }
  });
}

/** The team that a session leads. */
export function findTeamOf(places: TeamPlaces, sessionId: string): string | undefined {
  return findTeams(places).find(({ config }) => config?.leadSessionId === sessionId)?.name;
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && refuseTeamName(entry.name) === undefined)
      .map(({ name }) => name)
      .toSorted();
  } catch {
    return [];
  }
}
