// @io

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import type { UserMessage } from "../../conversation/message.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import type { ChildPlan } from "../../planning/agent-plan.ts";
import { continuePrompt, type SpawnRequest } from "../../planning/agent-request.ts";
import { hasEnded, type TaskState, wasCutOff } from "../../protocol/agent-state.ts";
import type { Spawn, SpawnOutcome } from "../../tasks/spawn-outcome.ts";
import type { TaskManager } from "../../tasks/task-manager.ts";
import type { BoardTask } from "../../teams/board.ts";
import { announceTasks, createBoardTools } from "../../teams/create-board-tools.ts";
import type { Mail } from "../../teams/mail.ts";
import { openMailbox } from "../../teams/mailbox.ts";
import { setMember } from "../../teams/member.ts";
import {
  findMember,
  implicitTeamName,
  leadName,
  personName,
  refuseMemberName,
  refuseTeamName,
  stateOf,
  systemName,
  type TeamConfig,
  type TeamMember,
  teammatesOf,
  withMember,
  withoutMember,
} from "../../teams/team-config.ts";
import { offerTasks, type TeamContext } from "../../teams/team-context.ts";
import type { TeamSettings } from "../../teams/team-settings.ts";
import type { TeamStore } from "../../teams/team-store.ts";
import * as t from "../../tools/input-type.ts";
import type { Tool, ToolOutcome } from "../../tools/tool.ts";
import type { EquippedAgent } from "../agent/agent-services.ts";
import {
  createTeam,
  ensureTeam,
  type Live,
  removeTeam,
  type SessionTeamParts,
  type TeamCreation,
} from "./create-team.ts";
import { findTeamOf } from "./find-team.ts";

/** The team that a session leads, from its first member on. */
export interface SessionTeam extends AsyncDisposable {
  readonly teamContext: TeamContext;
  readonly tools: readonly Tool[];
  /** Starts a teammate where the call asks for one, else an ordinary child. */
  readonly spawn: Spawn;
  drainMessages(): UserMessage | undefined;
  recorded(event: RunEvent): void;
  /** What a host has taken and puts into the next prompt; its keys go into the journal with that prompt. */
  hold(messages: readonly UserMessage[]): void;
  takeHeld(): Pick<UserMessage, "mail">;
  /** Calls back when there may be mail for the lead; the result ends it. */
  onMail(listener: () => void): () => void;
  /** A message of the person to a member, by the id of its agent. */
  writeTo(taskId: string, text: string): Promise<boolean>;
  /** The names of members that work now. */
  working(): readonly string[];
  /** Whether there may be mail for the lead soon. */
  isBusy(): boolean;
  /** Lets a lead that waits, and its listeners, look again. */
  look(): void;
  /** Resolves with mail for the lead, when no member works any more, or after the time. */
  wait(signal: AbortSignal, limitMs: number): Promise<void>;
  ended(plan: ChildPlan, state: TaskState, text: string): Promise<void>;
  isMember(taskId: string): boolean;
  /** After a crash: takes members up again that worked or have mail. */
  recover(signal: AbortSignal): Promise<void>;
  attach(equipped: Pick<EquippedAgent, "hooks" | "verifier">): void;
}

export function openSessionTeam(parts: SessionTeamParts): SessionTeam {
  const { runtime, plan, settings, tasks } = parts;
  const { paths } = runtime.discovered;
  const live = newLive();
  const open = (name: string): TeamStore => {
    live.store = settings.open(paths, name, settings.taskList);
    live.stopWatching = live.store.watch(() => {
      for (const listener of live.listeners) listener();
    });
    live.mailbox = openMailbox({ ...parts, store: live.store, name: leadName, report: runtime.notice });
    return live.store;
  };
  const existing = findTeamOf(paths, plan.sessionId);
  if (existing !== undefined) open(existing);
  const creation: TeamCreation = { parts, live, open };
  const teamContext = createLeadContext(creation);
  const pendingMessages = watchMembers(tasks, live);
  const isBusy = (): boolean => parts.hasPendingNotices() || workingMembers(tasks, live.store).length > 0;
  return {
    teamContext,
    tools: [
      ...createTeamTools({
        create: (name, description) => createTeam(name, description, creation),
        remove: ({ force }) => removeTeam(force, creation),
      }),
      ...createBoardTools(teamContext),
    ],
    spawn: (request, options) => spawnInTeam(request, { ...creation, options }),
    drainMessages: () => live.mailbox?.take(),
    recorded(event) {
      if (event.type === "user-added" && event.message.mail !== undefined)
        live.mailbox?.recorded(event.message.mail);
      if (event.type === "run-ended") live.mailbox?.giveBack();
    },
    ...createHostMail(live, parts),
    working: () => workingMembers(tasks, live.store),
    isBusy,
    look() {
      live.mailbox?.look();
      for (const listener of live.listeners) listener();
    },
    async wait(signal, limitMs) {
      const isAwake = (): boolean => !isBusy();
      await live.mailbox?.wait({ signal, limitMs, isAwake }).catch(() => undefined);
    },
    ended: (child, state, text) => reportEnd({ child, state, text }, creation),
    isMember: (taskId) => live.store?.config()?.members.some((member) => member.taskId === taskId) === true,
    recover: (signal) => recoverMembers(creation, signal),
    attach(equipped) {
      live.equipped = equipped;
    },
    async [Symbol.asyncDispose]() {
      pendingMessages();
      live.stopWatching?.();
      await live.mailbox?.[Symbol.asyncDispose]();
    },
  };
}

function newLive(): Live {
  return {
    store: undefined,
    mailbox: undefined,
    equipped: undefined,
    creation: undefined,
    listeners: new Set(),
  };
}

function createLeadContext(creation: TeamCreation): TeamContext {
  const { live, parts } = creation;
  const fire = async (
    event: "TaskCreated" | "TaskCompleted",
    task: Parameters<TeamContext["approveCreated"]>[0],
    signal = new AbortController().signal,
  ) => {
    const { id: taskId, subject, description } = task;
    const team = live.store?.name;
    const payload = {
      taskId,
      subject,
      description,
      teammate: leadName,
      team,
    };
    const { hooks, verifier } = live.equipped ?? {};
    const receipt = event === "TaskCompleted" ? { receipt: verifier?.current() } : {};
    const verdict = await hooks?.team.fire(event, { ...payload, ...receipt }, signal);
    return verdict === undefined || verdict.type === "passed" ? undefined : verdict.reason;
  };
  return {
    name: leadName,
    isLead: true,
    store: () => live.store,
    ensureStore: async () =>
      live.store ?? (await ensureTeam(creation, implicitTeamName(parts.plan.sessionId), "")),
    revive: (member) => reviveMember(member, creation),
    approveCreated: (task) => fire("TaskCreated", task),
    approveCompleted: async (task, signal) =>
      (await live.equipped?.verifier.refuseUnchecked(signal)) ?? (await fire("TaskCompleted", task, signal)),
  };
}

/** Mail for a lead that waits for a person: its host asks for it and puts it into a prompt. */
function createHostMail(
  live: Live,
  { journalsMail }: Pick<SessionTeamParts, "journalsMail">,
): Pick<SessionTeam, "hold" | "takeHeld" | "onMail" | "writeTo"> {
  let held: readonly string[] = [];
  return {
    hold(messages) {
      const keys = messages.flatMap(({ mail = [] }) => mail);
      if (journalsMail) held = [...held, ...keys];
      else live.mailbox?.recorded(keys);
    },
    takeHeld() {
      const mail = held;
      held = [];
      return mail.length === 0 ? {} : { mail };
    },
    onMail(listener) {
      live.listeners.add(listener);
      return () => void live.listeners.delete(listener);
    },
    async writeTo(taskId, text) {
      const member = live.store?.config()?.members.find((one) => one.taskId === taskId);
      if (live.store === undefined || member === undefined) return false;
      await live.store.send(member.name, { from: personName, body: text });
      return true;
    },
  };
}

/**
 * Also those that are idle and have mail: they are about to work. A member in another process says in the config that it
 * works, before it marks its mail as read and before its first event arrives here.
 */
function workingMembers(tasks: Pick<TaskManager, "list">, store: TeamStore | undefined): readonly string[] {
  const running = tasks.list().filter((task) => task.team !== undefined && !hasEnded(task));
  return running.flatMap(({ team }) => {
    if (team === undefined) return [];
    const { member, isIdle } = team;
    return isIdle && !isWoken(member, store) ? [] : [member];
  });
}

function isWoken(name: string, store: TeamStore | undefined): boolean {
  // In this order: the mark comes after the state.
  if (store?.inbox(name).mail.some(({ read }) => !read) === true) return true;
  const config = store?.config();
  const member = config === undefined ? undefined : findMember(config, name);
  return member !== undefined && stateOf(member) === "working";
}

/** Wakes a lead that waits, when a member becomes idle or ends. */
function watchMembers(tasks: TaskManager, live: Live): () => void {
  const pendingMessages = tasks.watch();
  void (async () => {
    for await (const { event, state } of pendingMessages)
      if (state.team !== undefined && (event.type === "run-idled" || event.type === "run-ended"))
        live.mailbox?.look();
  })().catch(() => undefined);
  return () => void pendingMessages.return?.();
}

interface Spawning extends TeamCreation {
  readonly options: Parameters<Spawn>[1];
}

async function spawnInTeam(request: SpawnRequest, spawning: Spawning): Promise<SpawnOutcome> {
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
async function joinTeam(request: SpawnRequest, name: string, { parts, live, ...creation }: Spawning) {
  const { plan, runtime, settings } = parts;
  const wanted = request.teamName ?? live.store?.name ?? implicitTeamName(plan.sessionId);
  if (live.store !== undefined && wanted !== live.store.name)
    return `you lead the team ${JSON.stringify(live.store.name)}, not ${JSON.stringify(wanted)}`;
  const badTeam = refuseTeamName(wanted);
  if (badTeam !== undefined) return `${JSON.stringify(wanted)} cannot be the name of a team: ${badTeam}`;
  const badName = refuseMemberName(name, []);
  if (badName !== undefined) return `${JSON.stringify(name)} cannot be the name of a member: ${badName}`;
  const store = live.store ?? (await ensureTeam({ parts, live, ...creation }, wanted, ""));
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

interface Resuming extends TeamCreation {
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
async function reviveMember(name: string, creation: TeamCreation): Promise<string | undefined> {
  const config = creation.live.store?.config();
  const member = config === undefined ? undefined : findMember(config, name);
  if (member === undefined) return "it is no longer a member";
  const outcome = await resumeMember(member, {
    ...creation,
    prompt: mailPrompt,
    spawn: creation.parts.authorizedSpawn,
  });
  return outcome.type === "refused" ? outcome.reason : undefined;
}

interface EndedMember {
  readonly child: ChildPlan;
  readonly state: TaskState;
  readonly text: string;
}

/** The lead is notified of every ending once; one that ended with its session is taken up with it. */
async function reportEnd({ child, state, text }: EndedMember, { live }: TeamCreation): Promise<void> {
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
 * Mail that came too late for a member that has shut down: its senders were informed that it arrived, so they are informed
 * that it was not read. What concerns the lead is returned; a person cannot be written to, so the lead gets that too.
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
async function waitForEnd(
  { taskId }: TeamMember,
  { parts }: TeamCreation,
  signal: AbortSignal,
): Promise<void> {
  if (taskId === undefined) return;
  const { transcripts } = parts.runtime.discovered.paths;
  const { transcript } = sessionFiles(transcripts, parts.plan.sessionId).agent(taskId);
  for (let waited = 0; waited < maxEndMs && hasLiveOwner(transcript); waited += lookMs)
    await sleep(lookMs, signal).catch(() => undefined);
}

const maxEndMs = 10_000;
const lookMs = 25;

/** Members that worked when the process died continue; those that were idle do when there is mail for them. */
async function recoverMembers(creation: TeamCreation, signal: AbortSignal): Promise<void> {
  const { live, parts } = creation;
  const { store } = live;
  const config = store?.config();
  if (store === undefined || config === undefined) return;
  const free: BoardTask[] = [];
  const notify = (name: string, message: string): Promise<void> =>
    store.send(leadName, { from: systemName, body: { type: "teammate_terminated", name, message } });
  for (const member of teammatesOf(config)) {
    if (signal.aborted) break;
    await waitForEnd(member, creation, signal);
    const wasWorking = stateOf(member) === "working";
    const hasMail = store.inbox(member.name).mail.some(({ read }) => !read);
    if (!wasWorking && !hasMail) {
      await setMember(store, member.name, { isActive: false, state: "ended" });
      const released = await releaseTasks(store, member.name);
      free.push(...released);
      if (released.length > 0)
        await notify(
          member.name,
          `${member.name} is no longer running; a message to it resumes it.${freeAgain(released)}`,
        );
      continue;
    }
    const prompt = wasWorking ? continuePrompt : mailPrompt;
    const outcome = await resumeMember(member, { ...creation, prompt, spawn: parts.spawn });
    if (outcome.type !== "refused") continue;
    const released = await releaseTasks(store, member.name);
    free.push(...released);
    await notify(
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

/** What the lead's tools ask of its session. */
interface TeamAdministration {
  /** Creates a team; a text says why it cannot. */
  create(
    name: string,
    description: string,
  ): Promise<{ readonly config: TeamConfig; readonly file: string } | string>;
  /** Deletes the team with its board and mail; a text says why it cannot. */
  remove(options: { readonly force: boolean }): Promise<{ readonly name: string } | string>;
}

const createInput = t.object({
  team_name: t.string().min(1).describe("The name of the new team."),
  description: t.string().optional().describe("What the team is for."),
  agent_type: t.string().optional(),
});

const deleteInput = t.object({
  force: t.boolean().optional().describe("True also stops members that still work."),
});

/** TeamCreate and TeamDelete, for the lead. */
function createTeamTools(administration: TeamAdministration): readonly Tool[] {
  const create: Tool<t.Infer<typeof createInput>> = {
    name: "TeamCreate",
    description:
      "Creates a team that you lead. Start its members with the Agent tool and a `name`; they keep their context, share a board of tasks and write to each other, until they are shut down. Without it, the first named agent starts a team by itself.",
    effect: "coordinate",
    origin: "builtin",
    input: createInput,
    async call({ team_name, description = "" }) {
      const created = await administration.create(team_name, description);
      if (typeof created === "string") return failed(created);
      const { name, leadAgentId } = created.config;
      return {
        content: `The team ${JSON.stringify(name)} was created; you are its lead.`,
        data: { team_name: name, team_file_path: created.file, lead_agent_id: leadAgentId },
      };
    },
  };
  const remove: Tool<t.Infer<typeof deleteInput>> = {
    name: "TeamDelete",
    description:
      "Deletes your team with its board and its mail. Refused while members are active, unless forced.",
    effect: "coordinate",
    origin: "builtin",
    input: deleteInput,
    async call({ force = false }) {
      const removed = await administration.remove({ force });
      if (typeof removed === "string") return failed(removed);
      const message = `The team ${JSON.stringify(removed.name)} was deleted.`;
      return { content: message, data: { success: true, message, team_name: removed.name } };
    },
  };
  return [create as Tool, remove as Tool];
}

function failed(reason: string): ToolOutcome {
  return { content: reason, isError: true, data: { success: false, message: reason } };
}
