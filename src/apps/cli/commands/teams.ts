import { RetinueError } from "../../../foundation/retinue-error.ts";
import { sessionFiles } from "../../../journal/session-files.ts";
import { stopElsewhere } from "../../../runtime/project/stop-elsewhere.ts";
import { type FoundTeam, findTeams } from "../../../runtime/teams/find-team.ts";
import { removeTeamFiles } from "../../../runtime/teams/found-team.ts";
import { mailOfTeam } from "../../../runtime/teams/mail-of-team.ts";
import { createPaths, type Paths } from "../../../settings/paths.ts";
import { hasLiveOwner } from "../../../storage/owner-lock.ts";
import { findTasks } from "../../../tasks/recovery/find-tasks.ts";
import { sortedTasks } from "../../../teams/board.ts";
import { lineOf } from "../../../teams/create-board-tools.ts";
import { bodyOf } from "../../../teams/mail.ts";
import {
  findMember,
  stateOf,
  type TeamConfig,
  type TeamMember,
  teammatesOf,
} from "../../../teams/team-config.ts";
import { leadName, personName } from "../../../teams/team-names.ts";
import { openTeamStore, type TeamStore } from "../../../teams/team-store.ts";
import type { CliHost } from "../cli-host.ts";
import { type CommandContext, misuse } from "../session-options.ts";
import { describeAge } from "../views/describe-age.ts";
import { createPaint } from "../views/paint.ts";
import { renderFields } from "../views/render-fields.ts";
import { type Column, renderTable } from "../views/render-table.ts";
import { stripControlCharacters } from "../views/strip-control-characters.ts";

export interface TeamsOptions {
  readonly json?: boolean;
  readonly force?: boolean;
  readonly dryRun?: boolean;
}

interface OpenedTeam {
  readonly name: string;
  readonly store: TeamStore;
  readonly config: TeamConfig;
  /** The transcripts of the lead's project. */
  readonly transcripts: string;
  /** A process that runs now leads it. */
  readonly isLed: boolean;
}

const columns: readonly Column[] = [
  { heading: "TEAM", atLeast: 12, style: "name" },
  { heading: "LEAD", atLeast: 8 },
  { heading: "MEMBERS", atLeast: 10 },
  { heading: "TASKS", atLeast: 6 },
  { heading: "AGE", atLeast: 4 },
  { heading: "FOLDER", atLeast: 12, elseBelow: 24, style: "dim" },
];

/** `retinue teams`: all teams of this user, led by any process. */
export async function teamsList({ host }: CommandContext, { json }: TeamsOptions): Promise<number> {
  const paths = createPaths(host);
  const found = findTeams(paths);
  const teams = found.flatMap((team) => openFound(team, paths, host));
  if (json === true) return writeJson(host, { teams: teams.map(describeTeam) });
  for (const { problem } of found)
    if (problem !== undefined) host.stderr.write(`retinue: ${stripControlCharacters(problem)}\n`);
  if (teams.length === 0) {
    host.stderr.write("There are no teams.\n");
    return 0;
  }
  const rows = teams.map((team) => {
    const { name, members, tasks, lead, createdAt, cwd } = describeTeam(team);
    const count = (state: string): string => {
      const of = members.filter((member) => member.state === state).length;
      return of === 0 ? "" : `${of} ${state}`;
    };
    const states = ["working", "idle", "ended"].map(count).filter((text) => text !== "");
    const done = tasks.filter(({ status }) => status === "completed").length;
    return [
      name,
      lead,
      states.join(", "),
      `${done}/${tasks.length}`,
      describeAge(Date.now() - createdAt),
      cwd,
    ].map(stripControlCharacters);
  });
  host.stdout.write(
    renderTable({
      columns,
      rows,
      width: host.stdout.columns,
      paint: createPaint(host.stdout.isColourAllowed),
    }),
  );
  return 0;
}

/** `retinue teams show NAME`. */
export async function teamsShow(
  { host }: CommandContext,
  name: string,
  { json }: TeamsOptions,
): Promise<number> {
  const team = openNamed(host, name);
  const described = describeTeam(team);
  if (json === true) return writeJson(host, { team: described });
  const fields = [
    { label: "team", value: described.name },
    ...(described.description === "" ? [] : [{ label: "description", value: described.description }]),
    { label: "lead", value: `session ${team.config.leadSessionId} (${described.lead})` },
    { label: "folder", value: described.cwd },
    ...described.members.map((member) => ({
      label: member.name,
      value: [
        member.state,
        member.agentType,
        member.agentId,
        member.unread === 0 ? undefined : `${member.unread} unread`,
        member.lastEnding,
      ]
        .filter((text) => text !== undefined)
        .join(", "),
    })),
    ...described.tasks.map((task) => ({
      label: `task ${task.id}`,
      value: lineOf(task, team.store.board.read()),
    })),
  ];
  host.stdout.write(
    renderFields(fields, createPaint(host.stdout.isColourAllowed), host.stdout.columns ?? 80),
  );
  return 0;
}

/** `retinue teams board NAME`. */
export async function teamsBoard(
  { host }: CommandContext,
  name: string,
  { json }: TeamsOptions,
): Promise<number> {
  const { store } = openNamed(host, name);
  const board = store.board.read();
  if (json === true) return writeJson(host, { tasks: sortedTasks(board), invalid: store.board.invalid() });
  const broken = store.board.invalid().map(({ file, reason }) => `${file} is not a task: ${reason}`);
  const lines = [...sortedTasks(board).map((task) => lineOf(task, board)), ...broken];
  host.stdout.write(
    lines.length === 0
      ? "The board has no tasks.\n"
      : lines.map((line) => `${stripControlCharacters(line)}\n`).join(""),
  );
  return 0;
}

/** `retinue teams messages NAME [MEMBER]`. */
export async function teamsMessages(
  { host }: CommandContext,
  { name, member }: { readonly name: string; readonly member: string | undefined },
  { json }: TeamsOptions,
): Promise<number> {
  const team = openNamed(host, name);
  const { store, config } = team;
  if (member !== undefined) memberOf(team, member);
  const names = member === undefined ? config.members.map((one) => one.name) : [member];
  const mail = mailOfTeam(store, names);
  if (json === true) return writeJson(host, { messages: mail.map(({ to, mail: one }) => ({ to, ...one })) });
  const paint = createPaint(host.stdout.isColourAllowed);
  for (const { to, mail: one } of mail) {
    const head = `${one.timestamp}  ${one.from} → ${to}${one.read ? "" : "  (unread)"}`;
    const body = bodyOf(one)
      .split("\n")
      .map((line) => `  ${stripControlCharacters(line)}`);
    host.stdout.write(`${paint.dim(stripControlCharacters(head))}\n${body.join("\n")}\n`);
  }
  if (mail.length === 0) host.stderr.write("There are no messages.\n");
  return 0;
}

/** `retinue teams send NAME MEMBER TEXT`: a message of the person, who leads no one by it. */
export async function teamsSend(
  { host }: CommandContext,
  {
    name,
    member,
    words,
  }: { readonly name: string; readonly member: string; readonly words: readonly string[] },
): Promise<number> {
  const team = openNamed(host, name);
  const to = member === leadName ? leadName : memberOf(team, member).name;
  const text = words.join(" ").trim();
  if (text === "")
    throw misuse("The message is missing.", `Write retinue teams send ${name} ${member} "text".`);
  await team.store.send(to, { from: personName, body: text });
  const note = team.isLed ? "" : " No process leads the team now; it is read when the session is continued.";
  host.stdout.write(`Sent to ${stripControlCharacters(to)}.${note}\n`);
  return 0;
}

/** `retinue teams stop NAME [MEMBER]`: ends members that run; their tasks go back to the board. */
export async function teamsStop(
  { host }: CommandContext,
  { name, member }: { readonly name: string; readonly member: string | undefined },
): Promise<number> {
  const team = openNamed(host, name);
  const wanted = member === undefined ? teammatesOf(team.config) : [memberOf(team, member)];
  const giveUp = new AbortController();
  const forget = host.onInterrupt((reason) => giveUp.abort(reason));
  try {
    for (const one of wanted) host.stdout.write(`${await stopMember(one, team, giveUp.signal)}\n`);
  } finally {
    forget();
  }
  return 0;
}

async function stopMember(
  { name, taskId = "" }: TeamMember,
  { transcripts, config }: OpenedTeam,
  signal: AbortSignal,
): Promise<string> {
  const found = await findTasks(transcripts, { sessionId: config.leadSessionId, idPrefix: taskId });
  const task = found.find(({ id }) => id === taskId);
  const shown = stripControlCharacters(name);
  if (task?.state !== "running") return `${shown} does not run.`;
  await stopElsewhere(task, { transcripts, signal });
  return `${shown} was stopped.`;
}

/** `retinue teams clean [NAME]`: removes teams that no process leads; a named one also when it has open tasks. */
export async function teamsClean(
  { host }: CommandContext,
  name: string | undefined,
  options: TeamsOptions,
): Promise<number> {
  const paths = createPaths(host);
  if (name !== undefined && options.force === true) return removeBroken(host, name, options);
  const teams =
    name === undefined
      ? findTeams(paths).flatMap((team) => openFound(team, paths, host))
      : [openNamed(host, name)];
  for (const team of teams) {
    const shown = stripControlCharacters(team.name);
    if (team.isLed) host.stdout.write(`kept  ${shown} (a running process leads it)\n`);
    else {
      if (options.dryRun !== true) removeTeamFiles(team.store);
      host.stdout.write(`${options.dryRun === true ? "would remove" : "removed"}  ${shown}\n`);
    }
  }
  if (teams.length === 0) host.stdout.write("Nothing to clean up.\n");
  return 0;
}

/** Also a team whose config cannot be read. */
function removeBroken(host: CliHost, name: string, { dryRun }: TeamsOptions): number {
  const paths = createPaths(host);
  const known = findTeams(paths).find((team) => team.name === name);
  if (known === undefined) throw unknownTeam(name);
  const [team] = openFound(known, paths, host);
  if (team?.isLed === true)
    throw new RetinueError("team-led", `A running process leads the team ${name}.`, {
      advice: `End it, or stop its members with \`retinue teams stop ${name}\`.`,
    });
  if (dryRun !== true) removeTeamFiles(openTeamStore(paths, name));
  host.stdout.write(`${dryRun === true ? "would remove" : "removed"}  ${stripControlCharacters(name)}\n`);
  return 0;
}

function openFound({ name, config }: FoundTeam, paths: Paths, host: CliHost): readonly OpenedTeam[] {
  if (config === undefined) return [];
  const { transcripts } = createPaths({ ...host, cwd: config.cwd ?? host.cwd });
  const { transcript } = sessionFiles(transcripts, config.leadSessionId);
  return [
    {
      name,
      config,
      transcripts,
      store: openTeamStore(paths, name, config.taskList),
      isLed: hasLiveOwner(transcript),
    },
  ];
}

export function openNamed(host: CliHost, name: string): OpenedTeam {
  const paths = createPaths(host);
  const known = findTeams(paths).find((team) => team.name === name);
  if (known === undefined) throw unknownTeam(name);
  const [team] = openFound(known, paths, host);
  if (team !== undefined) return team;
  throw new RetinueError("team-unreadable", known.problem ?? `The team ${name} cannot be read.`, {
    advice: `Fix its file, or remove it with \`retinue teams clean ${name} --force\`.`,
  });
}

function unknownTeam(name: string): RetinueError {
  return new RetinueError("unknown-team", `There is no team ${JSON.stringify(name)}.`, {
    advice: "`retinue teams` lists the teams.",
  });
}

export function memberOf({ config, name: team }: OpenedTeam, name: string): TeamMember {
  const member = findMember(config, name);
  if (member !== undefined) return member;
  throw new RetinueError("unknown-member", `The team ${team} has no member ${JSON.stringify(name)}.`, {
    advice: `Its members are ${config.members.map((one) => one.name).join(", ")}.`,
  });
}

/** A member of a team that no one leads runs nowhere, whatever its last state was. */
function describeTeam({ name, config, store, isLed }: OpenedTeam) {
  const { description, leadSessionId, createdAt, cwd = "" } = config;
  return {
    name,
    description,
    leadSessionId,
    lead: isLed ? "running" : "not running",
    createdAt,
    cwd,
    members: teammatesOf(config).map((member) => ({
      name: member.name,
      state: isLed ? stateOf(member) : "ended",
      agentType: member.agentType,
      agentId: member.taskId,
      lastEnding: member.lastEnding,
      unread: store.inbox(member.name).mail.filter(({ read }) => !read).length,
    })),
    tasks: sortedTasks(store.board.read()),
  };
}

function writeJson(host: CliHost, value: object): number {
  host.stdout.write(`${JSON.stringify({ version: 1, ...value }, undefined, 2)}\n`);
  return 0;
}
