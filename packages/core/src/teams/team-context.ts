import type { Actor, BoardTask } from "./board.ts";
import type { OutgoingMail } from "./mail.ts";
import {
  findMember,
  leadName,
  stateOf,
  systemName,
  type TeamConfig,
  teammatesOf,
  withMember,
} from "./team-config.ts";
import type { TeamStore } from "./team-store.ts";

/** An agent's place in a team: what its tools act for. */
export interface TeamContext extends Actor {
  /** The team; undefined while the lead has none. */
  store(): TeamStore | undefined;
  /** The team, which is created for a lead that has none. */
  ensureStore(): Promise<TeamStore>;
  /** Starts a member that has ended, so that it reads its mail; gives the reason when that is not possible. */
  revive?(member: string): Promise<string | undefined>;
  /** Hooks that may refuse a new task or a completed one. */
  approveCreated(task: BoardTask): Promise<string | undefined>;
  /** Before that, the checks of the agent that completes it have to pass. */
  approveCompleted(task: BoardTask, signal: AbortSignal): Promise<string | undefined>;
}

export type Delivered =
  | { readonly type: "sent"; readonly text: string }
  | { readonly type: "refused"; readonly reason: string };

/** Everyone who can be written to, the sender aside. */
export function addressees(config: TeamConfig, self: string): readonly string[] {
  return [...new Set([leadName, ...teammatesOf(config).map(({ name }) => name)])].filter(
    (name) => name !== self,
  );
}

/** The member that a recipient means: by name, by `name@team`, or by the id of its agent. */
export function findAddressee(config: TeamConfig, to: string): string | undefined {
  if (to === leadName || to === config.leadAgentId) return leadName;
  return config.members.find(({ name, agentId, taskId }) => name === to || agentId === to || taskId === to)
    ?.name;
}

/** Puts mail into the inbox of a member and wakes it, however it is now. */
export async function deliver(
  teamContext: TeamContext,
  to: string,
  mail: Omit<OutgoingMail, "from">,
): Promise<Delivered> {
  const store = teamContext.store();
  const config = store?.config();
  if (store === undefined || config === undefined) return refused("There is no team here.");
  const member = findAddressee(config, to);
  if (member === undefined)
    return refused(
      `There is no member ${JSON.stringify(to)} in the team ${config.name}. Members: ${addressees(config, teamContext.name).join(", ")}.`,
    );
  if (member === teamContext.name) return refused("That is you; a message to yourself reaches no one.");
  await store.send(member, { ...mail, from: teamContext.name });
  // It may have shut down in between, and then it is not read.
  const now = store.config();
  const ended = now === undefined ? undefined : findMember(now, member);
  if (member !== leadName && ended === undefined)
    return refused(`${member} has shut down, so it does not read the message.`);
  if (ended === undefined || member === leadName || stateOf(ended) !== "ended")
    return { type: "sent", text: `The message is in the inbox of ${member}.` };
  const obstacle = await teamContext.revive?.(member);
  if (teamContext.revive !== undefined && obstacle === undefined)
    return { type: "sent", text: `${member} had ended and was resumed with the message.` };
  return {
    type: "sent",
    text: `The message is in the inbox of ${member}, which does not run now${obstacle === undefined ? "; the lead resumes it" : `: ${obstacle}`}.`,
  };
}

/** Offers free tasks to idle members, each task to a member once, so that not all of them wake for one task. */
export async function offerTasks(store: TeamStore, free: readonly BoardTask[]): Promise<void> {
  if (free.length === 0) return;
  const offers = new Map<string, BoardTask>();
  const config = store.config();
  if (config === undefined || chooseOffers(config, free).size === 0) return;
  await store.update((now) => {
    // The team may have been deleted meanwhile; then there is no member to offer anything to.
    if (now === undefined) return undefined;
    for (const [name, task] of chooseOffers(now, free)) offers.set(name, task);
    return [...offers].reduce((next, [name, task]) => withOffer(next, name, task.id), now);
  });
  for (const [name, task] of offers)
    await store.send(name, {
      from: systemName,
      body: {
        type: "task_available",
        tasks: [task.id],
        message: `Task ${task.id} is free: ${task.subject}. Claim it with TaskUpdate (status "in_progress") if it is for you.`,
      },
    });
}

function chooseOffers(config: TeamConfig, free: readonly BoardTask[]): ReadonlyMap<string, BoardTask> {
  const idle = teammatesOf(config).filter((member) => stateOf(member) === "idle");
  const left = [...free];
  const chosen = new Map<string, BoardTask>();
  for (const { name, offered = [] } of idle) {
    const at = left.findIndex(({ id }) => !offered.includes(id));
    const [task] = at === -1 ? [] : left.splice(at, 1);
    if (task !== undefined) chosen.set(name, task);
  }
  return chosen;
}

function withOffer(config: TeamConfig, name: string, id: string): TeamConfig {
  const member = findMember(config, name);
  if (member === undefined) return config;
  return withMember(config, { ...member, offered: [...(member.offered ?? []), id] });
}

function refused(reason: string): Delivered {
  return { type: "refused", reason };
}
