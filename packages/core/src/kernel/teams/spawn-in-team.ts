// @io
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import type { ChildPlan } from "../../planning/agent-plan.ts";
import { continuePrompt, type SpawnRequest } from "../../planning/agent-request.ts";
import { type TaskState, wasCutOff } from "../../protocol/agent-state.ts";
import type { Spawn, SpawnOutcome } from "../../tasks/create-agent-tool.ts";
import type { BoardTask } from "../../teams/board.ts";
import { announceTasks } from "../../teams/create-board-tools.ts";
import type { Mail } from "../../teams/mail.ts";
import { setMember } from "../../teams/member.ts";
import {
  findMember,
  implicitTeamName,
  leadName,
  refuseMemberName,
  refuseTeamName,
  stateOf,
  systemName,
  type TeamMember,
  teammatesOf,
  withMember,
  withoutMember,
} from "../../teams/team-config.ts";
import { offerTasks } from "../../teams/team-context.ts";
import type { TeamSettings } from "../../teams/team-settings.ts";
import type { TeamStore } from "../../teams/team-store.ts";
import { type Founding, foundTeam } from "./found-team.ts";

interface Spawning extends Founding {
  readonly options: Parameters<Spawn>[1];
}

export async function spawnInTeam(request: SpawnRequest, spawning: Spawning): Promise<SpawnOutcome> {
  const { parts, live, options } = spawning;
  const known = live.store
    ?.config()
    ?.members.find(({ taskId }) => taskId !== undefined && taskId === request.resume);
  if (known !== undefined)
    return resumeMember(known, { ...spawning, prompt: request.prompt, spawn: parts.spawn });
  const isPlain =
    request.resume !== undefined || request.isolation !== undefined || parts.forksContext(request.agentType);
  const { name, teamName } = request;
  if (name === undefined || isPlain) {
    if (teamName === undefined) return parts.spawn(request, options);
    return refused(
      name === undefined
        ? "A member of a team needs a `name`."
        : "An agent that is resumed, isolated or forked cannot join a team; leave `team_name` out.",
    );
  }
  const joined = await joinTeam(request, name, spawning);
  if (typeof joined === "string") return refused(`The teammate was not started: ${joined}`);
  const { store, member } = joined;
  await announceTasks(store, name);
  const outcome = await parts.spawn(
    { ...request, agentId: member.taskId ?? "", team: membershipOf(store, member, parts.settings) },
    options,
  );
  if (outcome.type === "refused")
    await store.update((now) => (now === undefined ? undefined : withoutMember(now, name)));
  return outcome;
}

/** Reserves the name, so that of several that want it exactly one gets it. */
async function joinTeam(request: SpawnRequest, name: string, { parts, live, ...founding }: Spawning) {
  const { plan, runtime, settings } = parts;
  const wanted = request.teamName ?? live.store?.name ?? implicitTeamName(plan.sessionId);
  if (live.store !== undefined && wanted !== live.store.name)
    return `you lead the team ${JSON.stringify(live.store.name)}, not ${JSON.stringify(wanted)}`;
  const badTeam = refuseTeamName(wanted);
  if (badTeam !== undefined) return `${JSON.stringify(wanted)} cannot be the name of a team: ${badTeam}`;
  const badName = refuseMemberName(name, []);
  if (badName !== undefined) return `${JSON.stringify(name)} cannot be the name of a member: ${badName}`;
  const store = live.store ?? (await foundTeam({ parts, live, ...founding }, wanted, ""));
  const member: TeamMember = {
    agentId: `${name}@${store.name}`,
    name,
    agentType: request.agentType ?? "general-purpose",
    prompt: request.prompt,
    joinedAt: runtime.epochMs(),
    tmuxPaneId: "in-process",
    backendType: settings.mode,
    cwd: plan.directory,
    subscriptions: [],
    isActive: true,
    state: "working",
    taskId: `a${randomBytes(8).toString("hex")}`,
  };
  let refusal: string | undefined;
  await store.update((now) => {
    if (now === undefined) throw new RetinueError("team-gone", "The team was deleted meanwhile.");
    const reason = refuseMemberName(
      name,
      now.members.map((other) => other.name),
    );
    refusal =
      reason === undefined ? undefined : `${reason}; write to it with SendMessage, or choose another name`;
    return reason === undefined ? withMember(now, member) : now;
  });
  return refusal ?? { store, member };
}

function membershipOf(store: TeamStore, { name }: TeamMember, settings: TeamSettings) {
  return {
    team: store.name,
    member: name,
    taskList: settings.taskList ?? store.name,
    ...(settings.mode === "in-process" ? {} : { isProcess: true as const }),
  };
}

interface Resuming extends Founding {
  readonly prompt: string;
  readonly spawn: Spawn;
}

async function resumeMember(
  member: TeamMember,
  { parts, live, prompt, spawn }: Resuming,
): Promise<SpawnOutcome> {
  const { store } = live;
  if (store === undefined || member.taskId === undefined)
    return refused("It is no longer a member of this team.");
  await setMember(store, member.name, { isActive: true, state: "working" });
  const { transcripts } = parts.runtime.discovered.paths;
  const { transcript } = sessionFiles(transcripts, parts.plan.sessionId).agent(member.taskId);
  // One whose process died before it began starts with its first task.
  const isStarted = existsSync(transcript);
  const outcome = await spawn(
    {
      ...(isStarted
        ? { resume: member.taskId, prompt }
        : { agentId: member.taskId, prompt: member.prompt ?? prompt }),
      agentType: member.agentType,
      description: member.name,
      name: member.name,
      origin: "model",
      team: membershipOf(store, member, parts.settings),
    },
    { signal: new AbortController().signal },
  );
  if (outcome.type === "refused") await setMember(store, member.name, { isActive: false, state: "ended" });
  return outcome;
}

const mailPrompt = "You were idle and have new mail.";

/** A member that has ended reads its mail when it runs again. */
export async function reviveMember(name: string, found: Founding): Promise<string | undefined> {
  const config = found.live.store?.config();
  const member = config === undefined ? undefined : findMember(config, name);
  if (member === undefined) return "it is no longer a member";
  const outcome = await resumeMember(member, {
    ...found,
    prompt: mailPrompt,
    spawn: found.parts.authorizedSpawn,
  });
  return outcome.type === "refused" ? outcome.reason : undefined;
}

interface EndedMember {
  readonly child: ChildPlan;
  readonly state: TaskState;
  readonly text: string;
}

/** The lead hears of every ending once; one that ended with its session is taken up with it. */
export async function reportEnd({ child, state, text }: EndedMember, { live }: Founding): Promise<void> {
  const { store } = live;
  const name = child.task.team?.member;
  if (store === undefined || name === undefined || wasCutOff(state) || store.config() === undefined) return;
  const reason = state.ending?.reason ?? "no_end";
  const isShutDown = reason === "shutdown";
  if (isShutDown) await store.update((now) => (now === undefined ? undefined : withoutMember(now, name)));
  else
    await setMember(store, name, {
      isActive: false,
      state: "ended",
      lastEnding: `${state.status} (${reason})`,
    });
  const released = await releaseTasks(store, name);
  await offerTasks(store, released);
  const given = freeAgain(released);
  const why = reason === "idle_timeout" ? ", because it was idle too long" : "";
  const unread = store.inbox(name).mail.filter((mail) => !mail.read && mail.protocol === undefined);
  const waiting = unread.length === 0 ? "" : ` Messages that it has not read: ${unread.length}.`;
  const message = isShutDown
    ? `${name} has shut down.${given}${await returnMail(store, name, unread)}`
    : `${name} has ended${why}; a message to it resumes it.${waiting}${given}\n\n${text}`;
  await store.send(leadName, { from: systemName, body: { type: "teammate_terminated", name, message } });
  live.mailbox?.look();
}

/** Gives back what a member held, so that it can be offered again to those that did not want it before. */
async function releaseTasks(store: TeamStore, name: string): Promise<readonly BoardTask[]> {
  const released = await store.board.release(name);
  await forgetOffers(
    store,
    released.map(({ id }) => id),
  );
  return released;
}

function freeAgain(released: readonly BoardTask[]): string {
  return released.length === 0
    ? ""
    : ` Its tasks are free again: ${released.map(({ id }) => id).join(", ")}.`;
}

/**
 * Mail that came too late for a member that has shut down: those who sent it were told that it arrived, so they are told
 * that no one read it. What concerns the lead is returned; a person cannot be written to, so the lead hears of that too.
 */
async function returnMail(store: TeamStore, name: string, unread: readonly Mail[]): Promise<string> {
  if (unread.length === 0) return "";
  const isMember = (from: string): boolean => {
    const config = store.config();
    return from !== leadName && config !== undefined && findMember(config, from) !== undefined;
  };
  for (const { from, text } of unread.filter((mail) => isMember(mail.from)))
    await store.send(from, {
      from: systemName,
      body: {
        type: "teammate_terminated",
        name,
        message: `${name} has shut down and did not read your message:\n\n${text}`,
      },
    });
  // A later member of the same name must not take it for its own.
  await store.markRead(name, new Set(unread.map(({ key }) => key)));
  const rest = unread.filter((mail) => !isMember(mail.from));
  return rest
    .map(({ from, text }) => {
      const whose = from === leadName ? "your message" : `the message of ${from}`;
      return `\n\nIt did not read ${whose}:\n${text}`;
    })
    .join("");
}

async function forgetOffers(store: TeamStore, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const without = ({ offered, ...member }: TeamMember): TeamMember =>
    offered === undefined ? member : { ...member, offered: offered.filter((id) => !ids.includes(id)) };
  await store.update((now) =>
    now === undefined ? undefined : { ...now, members: now.members.map(without) },
  );
}

/** A member in a process of its own ends with its lead, but not in the same moment. */
async function waitForEnd({ taskId }: TeamMember, { parts }: Founding, signal: AbortSignal): Promise<void> {
  if (taskId === undefined) return;
  const { transcripts } = parts.runtime.discovered.paths;
  const { transcript } = sessionFiles(transcripts, parts.plan.sessionId).agent(taskId);
  for (let waited = 0; waited < maxEndMs && hasLiveOwner(transcript); waited += lookMs)
    await sleep(lookMs, signal).catch(() => undefined);
}

const maxEndMs = 10_000;
const lookMs = 25;

/** Members that worked when the process died go on; those that were idle do when there is mail for them. */
export async function recoverMembers(found: Founding, signal: AbortSignal): Promise<void> {
  const { live, parts } = found;
  const { store } = live;
  const config = store?.config();
  if (store === undefined || config === undefined) return;
  const free: BoardTask[] = [];
  const tell = (name: string, message: string): Promise<void> =>
    store.send(leadName, { from: systemName, body: { type: "teammate_terminated", name, message } });
  for (const member of teammatesOf(config)) {
    if (signal.aborted) break;
    await waitForEnd(member, found, signal);
    const wasWorking = stateOf(member) === "working";
    const hasMail = store.inbox(member.name).mail.some(({ read }) => !read);
    if (!wasWorking && !hasMail) {
      await setMember(store, member.name, { isActive: false, state: "ended" });
      const released = await releaseTasks(store, member.name);
      free.push(...released);
      if (released.length > 0)
        await tell(
          member.name,
          `${member.name} is no longer running; a message to it resumes it.${freeAgain(released)}`,
        );
      continue;
    }
    const prompt = wasWorking ? continuePrompt : mailPrompt;
    const outcome = await resumeMember(member, { ...found, prompt, spawn: parts.spawn });
    if (outcome.type !== "refused") continue;
    const released = await releaseTasks(store, member.name);
    free.push(...released);
    await tell(
      member.name,
      `${member.name} was cut off and could not be resumed: ${outcome.reason}${freeAgain(released)}`,
    );
  }
  // A member may have left the team a moment before the end, and its tasks not have been given back yet.
  const names = new Set(store.config()?.members.map(({ name }) => name));
  const orphaned = [...store.board.read().values()].flatMap(({ owner, status }) =>
    owner !== undefined && status === "in_progress" && !names.has(owner) ? [owner] : [],
  );
  for (const owner of new Set(orphaned)) free.push(...(await releaseTasks(store, owner)));
  await offerTasks(store, free);
}

function refused(reason: string): SpawnOutcome {
  return { type: "refused", reason };
}
