import { readEnvironment } from "@retinue/config/settings/read-environment.ts";
import type { MergedSettings } from "@retinue/config/settings/settings-layer.ts";
import type { UserMessage } from "../../conversation/message.ts";
import type { ChildMail } from "../../tasks/messenger.ts";
import { readTeamSettings } from "../../teams/team-settings.ts";
import type { Children, ChildrenParts } from "../agent/open-children.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { ReadingPorts } from "../session-ports.ts";
import type { SessionTeamParts } from "./create-team.ts";
import { openSessionTeam, type SessionTeam } from "./session-team.ts";

/** The team that a session leads; none where teams are off, and where its mail is not read. */
export function openTeamOf(
  parts: ChildrenParts,
  spawning: Pick<SessionTeamParts, "spawn" | "authorizedSpawn" | "hasPendingNotices">,
): SessionTeam | undefined {
  const { runtime } = parts.services;
  if (runtime.teams === undefined || !parts.leadsTeam) return undefined;
  const { registry } = runtime.discovered;
  return openSessionTeam({
    runtime,
    settings: runtime.teams,
    plan: parts.parent.plan,
    tasks: parts.tasks,
    journalsMail: parts.readsNotices,
    ...spawning,
    ...parts.mail,
    forksContext(agentType = "general-purpose") {
      const found = registry.find(agentType);
      return found.type === "found" && found.agent.definition.forkContext === true;
    },
  });
}

/** Whether named agents form a team, by the environment and settings of a folder. */
export function formsTeams(
  process: Readonly<Record<string, string | undefined>>,
  { env, plain: settings }: Pick<MergedSettings, "env" | "plain">,
): boolean {
  const environment = { ...process, ...Object.fromEntries(env) };
  const { options: variables } = readEnvironment(environment);
  return readTeamSettings({ option: undefined, environment, variables, settings }) !== undefined;
}

export interface ParentMailParts {
  readonly mail: ChildMail;
  readonly team: SessionTeam | undefined;
  /** Children in the background run, or have ended and are about to say so. */
  readonly isBusy: () => boolean;
  /** Questions of agents wait in the inbox. */
  readonly hasQuestions: () => boolean;
  readonly limitMs: number;
  readonly notice: RuntimeContext["notice"];
  /** A person is at the session and need not wait. */
  readonly reading: ReadingPorts | undefined;
  /** What the program said about agents in the background at the end of a run. */
  readonly background: ChildrenParts["background"];
}

/** How long work in the background is waited for once nothing else is left to do. */
export const defaultBackgroundWaitMs = 600_000;

export function backgroundWaitOf(environment: Readonly<Record<string, string | undefined>>): number {
  return readEnvironment(environment).options.printBackgroundWaitMs ?? defaultBackgroundWaitMs;
}

/** What a main agent reads between its turns and waits for at its end: notices of children, and mail of its team. */
export function createParentMail({
  mail,
  team,
  isBusy,
  hasQuestions,
  limitMs,
  notice,
  reading,
  background,
}: ParentMailParts): Pick<Children, "takeMessages" | "beforeEnd"> {
  const waits = reading === undefined && background === "wait";
  const { takesReports } = reading ?? {};
  const teamMail = (): readonly UserMessage[] => {
    const message = team?.drainMessages();
    return message === undefined ? [] : [message];
  };

  async function waitForMessages(signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const stop = AbortSignal.any([signal, over.signal]);
    const arrivals = [
      ...(isBusy() ? [mail.wait(stop, limitMs)] : []),
      ...(team?.isBusy() === true ? [team.wait(stop, limitMs)] : []),
    ];
    if (arrivals.length > 0) await Promise.race(arrivals);
    over.abort();
  }

  /** The run ends although members still work: the person learns who is stopped with it. */
  function reportWorking(): undefined {
    const names = team?.working() ?? [];
    if (names.length > 0)
      notice?.(
        `The run ended while teammates were still working: ${names.join(", ")}. Continue the session to resume them.`,
      );
  }

  return {
    takeMessages: () => [...(takesReports?.() === false ? [] : mail.takeAll()), ...teamMail()],
    async beforeEnd(signal) {
      const [first] = teamMail();
      if (first !== undefined || takesReports !== undefined) return first;
      if (mail.isEmpty() && waits) await waitForMessages(signal);
      while (true) {
        const pendingMessages = mail.takeOne() ?? teamMail()[0];
        if (pendingMessages !== undefined || !waits) return pendingMessages;
        // A question may wait for days, and its agent with it; once it is answered, the agent has its time again.
        const isAwaited = hasQuestions() && (isBusy() || team?.isBusy() === true);
        if (!isAwaited || signal.aborted) return reportWorking();
        await waitForMessages(signal);
      }
    },
  };
}
