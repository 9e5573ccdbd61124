import { join } from "node:path";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import { hasEnded } from "../../protocol/agent-state.ts";
import type { Spawn } from "../../tasks/spawn-outcome.ts";
import type { TaskManager } from "../../tasks/task-manager.ts";
import type { Mailbox } from "../../teams/mailbox.ts";
import { leadName, refuseTeamName, type TeamConfig, type TeamMember } from "../../teams/team-config.ts";
import type { TeamRuntime } from "../../teams/team-settings.ts";
import { removeTeamFiles, type TeamStore } from "../../teams/team-store.ts";
import type { EquippedAgent } from "../agent/agent-services.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** What a session gives to its team. */
export interface SessionTeamParts {
  readonly runtime: Pick<RuntimeContext, "discovered" | "notice" | "epochMs">;
  readonly settings: TeamRuntime;
  readonly plan: AgentPlan;
  readonly tasks: TaskManager;
  /** Starts a child without a question. */
  readonly spawn: Spawn;
  /** Starts a child as if a call of the Agent tool had asked for it. */
  readonly authorizedSpawn: Spawn;
  /** Whether a member has ended and the lead is about to be notified. */
  readonly hasPendingNotices: () => boolean;
  /** Whether an agent type starts with its parent's conversation; such a child is no teammate. */
  readonly forksContext: (agentType: string | undefined) => boolean;
  /** Mail counts as read when the lead's conversation is written down with it; otherwise when it is taken. */
  readonly journalsMail: boolean;
  /** Keys of the mail that the lead's conversation has. */
  readonly delivered: ReadonlySet<string>;
  readonly commit?: (() => Promise<void>) | undefined;
}

/** What changes while a session runs. */
export interface Live {
  store: TeamStore | undefined;
  mailbox: Mailbox | undefined;
  /** The hooks and checks of the lead, once it is open. */
  equipped: Pick<EquippedAgent, "hooks" | "verifier"> | undefined;
  creation: Promise<TeamStore> | undefined;
  /** Hosts that want to know of mail. */
  readonly listeners: Set<() => void>;
  stopWatching?: () => void;
}

export interface TeamCreation {
  readonly parts: SessionTeamParts;
  readonly live: Live;
  readonly open: (name: string) => TeamStore;
}

/** Several members may start at the same time, and the first of them creates the team. */
export async function ensureTeam(
  creation: TeamCreation,
  name: string,
  description: string,
): Promise<TeamStore> {
  const { live } = creation;
  if (live.store !== undefined) return live.store;
  live.creation ??= writeConfig(creation, name, description).finally(() => {
    live.creation = undefined;
  });
  return live.creation;
}

async function writeConfig(
  { parts, open }: TeamCreation,
  name: string,
  description: string,
): Promise<TeamStore> {
  const { runtime, plan } = parts;
  const { paths } = runtime.discovered;
  const store = parts.settings.open(paths, name, parts.settings.taskList);
  const createdAt = runtime.epochMs();
  const lead: TeamMember = {
    agentId: `${leadName}@${name}`,
    name: leadName,
    agentType: plan.agent.name,
    model: plan.model.value,
    joinedAt: createdAt,
    tmuxPaneId: "",
    cwd: plan.directory,
    subscriptions: [],
  };
  await store.update((existing) => {
    if (existing !== undefined)
      throw new RetinueError("team-exists", `There is already a team ${JSON.stringify(name)}.`);
    return {
      name,
      description,
      createdAt,
      leadAgentId: lead.agentId,
      leadSessionId: plan.sessionId,
      members: [lead],
      cwd: plan.directory,
      taskList: parts.settings.taskList,
    };
  });
  return open(name);
}

export async function createTeam(
  name: string,
  description: string,
  creation: TeamCreation,
): Promise<{ readonly config: TeamConfig; readonly file: string } | string> {
  const refusal = refuseTeamName(name);
  if (refusal !== undefined) return `${JSON.stringify(name)} cannot be the name of a team: ${refusal}.`;
  const { store } = creation.live;
  if (store !== undefined)
    return `You already lead the team ${JSON.stringify(store.name)}; delete it with TeamDelete first.`;
  try {
    const created = await ensureTeam(creation, name, description);
    const config = created.config();
    return config === undefined
      ? "The team was deleted again."
      : { config, file: join(created.directory, "config.json") };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

export async function removeTeam(
  force: boolean,
  { parts, live }: TeamCreation,
): Promise<{ readonly name: string } | string> {
  const { store } = live;
  if (store === undefined) return "You lead no team.";
  const running = parts.tasks.list().filter((task) => task.team !== undefined && !hasEnded(task));
  if (running.length > 0 && !force) {
    const names = running.map(
      ({ team }) => `${team?.member} (${team?.isIdle === true ? "idle" : "working"})`,
    );
    return `Members are still active: ${names.join(", ")}. Shut them down with SendMessage (type "shutdown_request"), or delete the team with force.`;
  }
  live.stopWatching?.();
  await live.mailbox?.[Symbol.asyncDispose]();
  live.store = undefined;
  live.mailbox = undefined;
  await Promise.all(running.map(({ id }) => parts.tasks.stop(id, "parent")));
  removeTeamFiles(store);
  return { name: store.name };
}
