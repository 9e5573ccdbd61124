import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { PlainSettings } from "@retinue/config/settings/plain-settings.ts";
import type { EnvironmentOptions } from "@retinue/config/settings/read-environment.ts";
import { refuseTeamName } from "./team-config.ts";
import type { OpenTeam } from "./team-store.ts";

/** Where members of a team run. */
export type TeammateMode = "in-process" | "process" | "tmux";

export interface TeamSettings {
  readonly mode: TeammateMode;
  /** How long a member may be idle; 0 for ever. */
  readonly idleLimitMs: number;
  /** Whose list of tasks the team shares; its own when absent. */
  readonly taskList?: string;
}

/** The settings, with the teams that are open in this process. */
export interface TeamRuntime extends TeamSettings {
  readonly open: OpenTeam;
}

export interface TeamSettingsInput {
  /** What the program says. */
  readonly option: boolean | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly variables: Pick<EnvironmentOptions, "agentTeams" | "taskListId">;
  readonly settings: Pick<PlainSettings, "teams" | "teammateMode">;
}

const defaultIdleMinutes = 60;

/** What the program, the environment and settings specify about teams; undefined where they are off. Pure. */
export function readTeamSettings({
  option,
  environment,
  variables: { agentTeams, taskListId },
  settings,
}: TeamSettingsInput): TeamSettings | undefined {
  const setting: JsonRecord = settings.teams ?? { enabled: false };
  const { enabled = true, idleMinutes = defaultIdleMinutes, ...unknown } = setting;
  const [stray] = Object.keys(unknown);
  if (stray !== undefined || typeof enabled !== "boolean")
    throw unusable(
      `teams.${stray ?? "enabled"}`,
      stray === undefined ? "true or false" : "enabled or idleMinutes as keys",
    );
  if (typeof idleMinutes !== "number" || !(idleMinutes >= 0))
    throw unusable("teams.idleMinutes", "a number of minutes, or 0 for no limit");
  if (!(option ?? agentTeams ?? enabled)) return undefined;
  const badList = taskListId === undefined ? undefined : refuseTeamName(taskListId);
  if (badList !== undefined)
    throw new RetinueError("invalid-settings", `CLAUDE_CODE_TASK_LIST_ID cannot be used: ${badList}.`);
  return {
    mode: readMode(settings.teammateMode, environment),
    idleLimitMs: Math.min(idleMinutes * 60_000, maxTimer),
    taskList: taskListId,
  };
}

/** The longest time that a timer can wait. */
const maxTimer = 2 ** 31 - 1;

function readMode(
  mode: PlainSettings["teammateMode"],
  environment: Readonly<Record<string, string | undefined>>,
): TeammateMode {
  if (mode === "iterm2")
    throw new RetinueError("unsupported-setting", 'The setting teammateMode "iterm2" is not supported.', {
      advice: 'Use "in-process", "process", "tmux" or "auto".',
    });
  if (mode !== "auto") return mode ?? "in-process";
  return (environment["TMUX"] ?? "") === "" ? "in-process" : "tmux";
}

function unusable(key: string, expected: string): RetinueError {
  return new RetinueError("invalid-settings", `The setting ${key} is not usable; expected ${expected}.`, {
    advice: 'Write, for example, "teams": true or "teams": {"idleMinutes": 30}.',
  });
}
