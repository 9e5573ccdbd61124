import type { UserMessage } from "../../conversation/message.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import type { ChildPlan } from "../../planning/agent-plan.ts";
import { hasEnded, type TaskState } from "../../protocol/agent-state.ts";
import type { Spawn } from "../../tasks/create-agent-tool.ts";
import type { TaskManager } from "../../tasks/task-manager.ts";
import { createBoardTools } from "../../teams/create-board-tools.ts";
import { createTeamTools } from "../../teams/create-team-tools.ts";
import { openMailbox } from "../../teams/mailbox.ts";
import { findMember, implicitTeamName, leadName, personName, stateOf } from "../../teams/team-config.ts";
import type { TeamContext } from "../../teams/team-context.ts";
import type { TeamStore } from "../../teams/team-store.ts";
import type { Tool } from "../../tools/tool.ts";
import type { EquippedAgent } from "../agent/agent-services.ts";
import { findTeamOf } from "./find-team.ts";
import {
  createTeam,
  type Founding,
  foundTeam,
  type Live,
  removeTeam,
  type SessionTeamParts,
} from "./found-team.ts";
import { recoverMembers, reportEnd, reviveMember, spawnInTeam } from "./spawn-in-team.ts";

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
  /** Lets a lead that waits, and those who listen for it, look again. */
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
  const found: Founding = { parts, live, open };
  const teamContext = createLeadContext(found);
  const pendingMessages = watchMembers(tasks, live);
  const isBusy = (): boolean => parts.hasPendingNotices() || workingMembers(tasks, live.store).length > 0;
  return {
    teamContext,
    tools: [
      ...createTeamTools({
        create: (name, description) => createTeam(name, description, found),
        remove: ({ force }) => removeTeam(force, found),
      }),
      ...createBoardTools(teamContext),
    ],
    spawn: (request, options) => spawnInTeam(request, { ...found, options }),
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
    ended: (child, state, text) => reportEnd({ child, state, text }, found),
    isMember: (taskId) => live.store?.config()?.members.some((member) => member.taskId === taskId) === true,
    recover: (signal) => recoverMembers(found, signal),
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
    founding: undefined,
    listeners: new Set(),
  };
}

function createLeadContext(found: Founding): TeamContext {
  const { live, parts } = found;
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
      live.store ?? (await foundTeam(found, implicitTeamName(parts.plan.sessionId), "")),
    revive: (member) => reviveMember(member, found),
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
