// @io
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import type { Paths } from "@retinue/config/settings/paths.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { findTasks } from "../../tasks/find-tasks.ts";
import { type BoardTask, lineOf, sortedTasks } from "../../teams/board.ts";
import { bodyOf } from "../../teams/mail.ts";
import {
  findMember,
  leadName,
  personName,
  stateOf,
  type TeamConfig,
  type TeamMember,
  teammatesOf,
} from "../../teams/team-config.ts";
import { openTeamStore, removeTeamFiles, type TeamStore } from "../../teams/team-store.ts";
import { type FoundTeam, findTeams } from "../teams/find-team.ts";
import { type MailLine, mailOfTeam } from "../teams/mail-of-team.ts";
import { submitElsewhere } from "./submit-elsewhere.ts";

/** A team as it is now. A member of a team that no process leads runs nowhere, whatever its last state was. */
export interface TeamSummary {
  readonly name: string;
  readonly description: string;
  readonly leadSessionId: string;
  readonly lead: "running" | "not running";
  readonly createdAt: number;
  readonly cwd: string;
  readonly members: readonly {
    readonly name: string;
    readonly state: string;
    readonly agentType: string | undefined;
    readonly agentId: string | undefined;
    readonly lastEnding: string | undefined;
    readonly unread: number;
  }[];
  readonly tasks: readonly BoardTask[];
}

/** The tasks of a team. */
export interface TeamBoard {
  readonly tasks: readonly BoardTask[];
  /** Each task as one line, in the same order. */
  readonly lines: readonly string[];
  /** Files among the tasks that are none. */
  readonly invalid: readonly { readonly file: string; readonly reason: string }[];
}

export interface TeamMessage extends MailLine {
  /** What it says, without what is only for programs. */
  readonly body: string;
}

/** The teams of this user, led by any process. */
export interface ProjectTeams {
  list(): Promise<{ readonly teams: readonly TeamSummary[]; readonly problems: readonly string[] }>;
  get(name: string): Promise<TeamSummary>;
  board(name: string): Promise<TeamBoard>;
  /** All mail, or that to one member, oldest first. */
  messages(name: string, member?: string): Promise<readonly TeamMessage[]>;
  /** A message of the person, which makes them no lead; `isLed` says whether a process reads it now. */
  send(name: string, member: string, text: string): Promise<{ readonly to: string; readonly isLed: boolean }>;
  /** Ends members that run, all or one; their tasks go back to the board. */
  stop(
    name: string,
    options?: { readonly member?: string; readonly signal?: AbortSignal },
  ): AsyncIterable<{ readonly member: string; readonly wasRunning: boolean }>;
  /** Removes teams that no process leads; with `force` also a named one whose file cannot be read. */
  clean(
    name?: string,
    options?: { readonly force?: boolean; readonly dryRun?: boolean },
  ): Promise<readonly { readonly name: string; readonly isRemoved: boolean }[]>;
  /** What a member does, in lines, until it ends. */
  watch(name: string, member: string, options?: { readonly signal?: AbortSignal }): AsyncIterable<string>;
}

/** `paths` of the folder, or of another where a team was created. */
export function projectTeams(paths: (cwd?: string) => Promise<Paths>): ProjectTeams {
  const open = async (name: string): Promise<OpenedTeam> => openNamed(name, await paths(), paths);
  return {
    async list() {
      const places = await paths();
      const found = findTeams(places);
      const teams = await openAll(found, places, paths);
      return {
        teams: teams.map(describeTeam),
        problems: found.flatMap(({ problem }) => problem ?? []),
      };
    },
    get: async (name) => describeTeam(await open(name)),
    async board(name) {
      const { store } = await open(name);
      const board = store.board.read();
      const tasks = sortedTasks(board);
      return { tasks, lines: tasks.map((task) => lineOf(task, board)), invalid: store.board.invalid() };
    },
    async messages(name, member) {
      const team = await open(name);
      if (member !== undefined) memberOf(team, member);
      const names = member === undefined ? team.config.members.map((one) => one.name) : [member];
      return mailOfTeam(team.store, names).map((line) => ({ ...line, body: bodyOf(line.mail) }));
    },
    async send(name, member, text) {
      const team = await open(name);
      const to = member === leadName ? leadName : memberOf(team, member).name;
      await team.store.send(to, { from: personName, body: text });
      return { to, isLed: team.isLed };
    },
    async *stop(name, { member, signal = new AbortController().signal } = {}) {
      const team = await open(name);
      const wanted = member === undefined ? teammatesOf(team.config) : [memberOf(team, member)];
      for (const one of wanted) yield { member: one.name, wasRunning: await stopMember(one, team, signal) };
    },
    async clean(name, { force = false, dryRun = false } = {}) {
      const places = await paths();
      const remove = (store: TeamStore): void => void (dryRun ? undefined : removeTeamFiles(store));
      if (name !== undefined && force) {
        await refuseLed(name, places, paths);
        remove(openTeamStore(places, name));
        return [{ name, isRemoved: true }];
      }
      const teams = name === undefined ? await openAll(findTeams(places), places, paths) : [await open(name)];
      for (const { store, isLed } of teams) if (!isLed) remove(store);
      return teams.map((team) => ({ name: team.name, isRemoved: !team.isLed }));
    },
    watch: (name, member, { signal = new AbortController().signal } = {}) =>
      watchMember({ open: () => open(name), member, signal }),
  };
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

type PathsOf = (cwd?: string) => Promise<Paths>;

async function openAll(
  found: readonly FoundTeam[],
  places: Paths,
  paths: PathsOf,
): Promise<readonly OpenedTeam[]> {
  return (await Promise.all(found.map((team) => openFound(team, places, paths)))).flat();
}

async function openFound(
  { name, config }: FoundTeam,
  places: Paths,
  paths: PathsOf,
): Promise<readonly OpenedTeam[]> {
  if (config === undefined) return [];
  const { transcripts } = config.cwd === undefined ? places : await paths(config.cwd);
  const { transcript } = sessionFiles(transcripts, config.leadSessionId);
  const store = openTeamStore(places, name, config.taskList);
  return [{ name, config, transcripts, store, isLed: hasLiveOwner(transcript) }];
}

async function openNamed(name: string, places: Paths, paths: PathsOf): Promise<OpenedTeam> {
  const known = findKnown(name, places);
  const [team] = await openFound(known, places, paths);
  if (team !== undefined) return team;
  throw new RetinueError("team-unreadable", known.problem ?? `The team ${name} cannot be read.`, {
    advice: `Fix its file, or remove it with \`retinue teams clean ${name} --force\`.`,
  });
}

function findKnown(name: string, places: Paths): FoundTeam {
  const known = findTeams(places).find((team) => team.name === name);
  if (known !== undefined) return known;
  throw new RetinueError("unknown-team", `There is no team ${JSON.stringify(name)}.`, {
    advice: "`retinue teams` lists the teams.",
  });
}

/** Also where its config cannot be read. */
async function refuseLed(name: string, places: Paths, paths: PathsOf): Promise<void> {
  const [team] = await openFound(findKnown(name, places), places, paths);
  if (team?.isLed === true)
    throw new RetinueError("team-led", `A running process leads the team ${name}.`, {
      advice: `Stop it, or stop its members with \`retinue teams stop ${name}\`.`,
    });
}

function memberOf({ config, name: team }: OpenedTeam, name: string): TeamMember {
  const member = findMember(config, name);
  if (member !== undefined) return member;
  throw new RetinueError("unknown-member", `The team ${team} has no member ${JSON.stringify(name)}.`, {
    advice: `Its members are ${config.members.map((one) => one.name).join(", ")}.`,
  });
}

async function stopMember(
  { taskId = "" }: TeamMember,
  { transcripts, config }: OpenedTeam,
  signal: AbortSignal,
): Promise<boolean> {
  const found = await findTasks(transcripts, { sessionId: config.leadSessionId, idPrefix: taskId });
  const task = found.find(({ id }) => id === taskId);
  if (task?.state !== "running") return false;
  await submitElsewhere({ type: "stop", agent: taskId }, task, { transcripts, signal });
  return true;
}

function describeTeam({ name, config, store, isLed }: OpenedTeam): TeamSummary {
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

const lookMs = 200;

interface Watching {
  readonly open: () => Promise<OpenedTeam>;
  readonly member: string;
  readonly signal: AbortSignal;
}

async function* watchMember({ open, member, signal }: Watching): AsyncGenerator<string> {
  const team = await open();
  const { taskId = "" } = memberOf(team, member);
  const files = sessionFiles(team.transcripts, team.config.leadSessionId);
  const tail = createTail(files.agent(taskId).output);
  while (!signal.aborted) {
    yield* tail.read();
    if (await hasLeft(open, member)) break;
    await sleep(lookMs, signal).catch(() => undefined);
  }
  yield* tail.read();
}

/** It has ended, was shut down, or has no lead any more. */
async function hasLeft(open: Watching["open"], member: string): Promise<boolean> {
  try {
    const { config, isLed } = await open();
    const entry = findMember(config, member);
    return !isLed || entry === undefined || stateOf(entry) === "ended";
  } catch {
    return true;
  }
}

/** What was added to a file since the last time, in whole lines. */
function createTail(file: string): { read(): readonly string[] } {
  let at = 0;
  let rest = "";
  return {
    read() {
      let descriptor: number;
      try {
        descriptor = openSync(file, "r");
      } catch {
        return [];
      }
      try {
        const bytes = Buffer.alloc(Math.max(0, fstatSync(descriptor).size - at));
        at += readSync(descriptor, bytes, 0, bytes.length, at);
        const lines = (rest + bytes.toString("utf8")).split("\n");
        rest = lines.pop() ?? "";
        return lines;
      } finally {
        closeSync(descriptor);
      }
    },
  };
}
