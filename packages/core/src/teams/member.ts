import { randomUUID } from "node:crypto";
import type { PermissionMode } from "@retinue/gate/permission-policy.ts";
import type { UserMessage } from "../conversation/message.ts";
import type { RunEnding } from "../conversation/run-event.ts";
import type { TeamMembership } from "../planning/agent-plan.ts";
import { handInPlanTool } from "../planning/plan-rights.ts";
import type { Standby } from "../tasks/run-agent.ts";
import * as t from "../tools/input-type.ts";
import type { Tool } from "../tools/tool.ts";
import { type BoardTask, claimableTasks } from "./board.ts";
import { createBoardTools } from "./create-board-tools.ts";
import { createSendMessageTool } from "./create-send-message-tool.ts";
import type { ProtocolMessage } from "./mail.ts";
import { type Mailbox, openMailbox } from "./mailbox.ts";
import { findMember, leadName, type TeamMember, withMember } from "./team-config.ts";
import { deliver, offerTasks, type TeamContext } from "./team-context.ts";
import type { TeamStore } from "./team-store.ts";

/** What hooks say about events of a team, and the runtime about the work. */
export interface MemberHooks {
  /** Runs the checks of the member; a text says which do not pass. */
  readonly refuseUnchecked: (signal: AbortSignal) => Promise<string | undefined>;
  readonly idle: (signal: AbortSignal) => Promise<HookVerdict>;
  readonly created: (task: BoardTask) => Promise<string | undefined>;
  readonly completed: (task: BoardTask, signal?: AbortSignal) => Promise<string | undefined>;
}

export type HookVerdict =
  | { readonly type: "passed" }
  | { readonly type: "blocked"; readonly reason: string }
  | { readonly type: "stopped"; readonly reason: string };

export interface MemberOptions {
  readonly store: TeamStore;
  readonly membership: TeamMembership;
  readonly hooks: () => MemberHooks | undefined;
  readonly delivered: ReadonlySet<string>;
  readonly commit?: (() => Promise<void>) | undefined;
  readonly report?: ((text: string) => void) | undefined;
  /** How long it may be idle; 0 for ever. */
  readonly idleLimitMs: number;
  /** A long text as the lead may read it: bounded, with the file that has all of it. */
  readonly bounded: (text: string) => string;
}

/** A teammate while it runs: its mail, its tools, and its way from work to idle and back. */
export interface Member extends AsyncDisposable {
  readonly tools: readonly Tool[];
  readonly standby: Standby;
  drainMessages(): UserMessage | undefined;
  /** The mode it has instead of that of its plan. */
  mode(): PermissionMode | undefined;
  /** Before its work counts as done; a message makes it continue. */
  beforeIdle(signal: AbortSignal): Promise<UserMessage | undefined>;
  /** It has agreed to end. */
  isShutDown(): boolean;
}

/** Hooks may send a member back to work this often in a row. */
const maxRounds = 8;

export function openMember(options: MemberOptions): Member {
  const { store, membership, hooks } = options;
  const { member: name } = membership;
  const state = {
    isShutDown: false,
    stopReason: undefined as string | undefined,
    hasReported: false,
    rounds: 0,
  };
  const mailbox = openMailbox({ ...options, name });
  const teamContext: TeamContext = {
    name,
    isLead: false,
    store: () => store,
    ensureStore: async () => store,
    approveCreated: async (task) => hooks()?.created(task),
    approveCompleted: async (task, signal) =>
      (await hooks()?.refuseUnchecked(signal)) ?? (await hooks()?.completed(task, signal)),
  };
  const send = createSendMessageTool({
    teamContext,
    onShutdown() {
      state.isShutDown = true;
    },
  });
  return {
    tools: [
      noticing(send, () => (state.hasReported = true)),
      ...createBoardTools(teamContext),
      ...planTools(teamContext, membership),
    ],
    drainMessages: mailbox.take,
    mode: () =>
      membership.approvedMode !== undefined && memberOf(store, name)?.planApproved === true
        ? membership.approvedMode
        : undefined,
    isShutDown: () => state.isShutDown || state.stopReason !== undefined,
    async beforeIdle(signal) {
      const reason = await reasonToContinue({ options, state }, signal);
      if (reason === undefined || state.rounds >= maxRounds) return undefined;
      state.rounds += 1;
      return {
        role: "user",
        content: [{ type: "text", text: `<hook-feedback>\n${reason}\n</hook-feedback>` }],
      };
    },
    standby: createStandby({ options, state, mailbox, teamContext }),
    [Symbol.asyncDispose]: () => mailbox[Symbol.asyncDispose](),
  };
}

interface MemberState {
  isShutDown: boolean;
  /** A hook wants it to end. */
  stopReason: string | undefined;
  /** It has written to the lead during this piece of work. */
  hasReported: boolean;
  rounds: number;
}

interface Parts {
  readonly options: MemberOptions;
  readonly state: MemberState;
}

/** Hooks are notified of tasks that are still in progress, and that it is about to be idle. */
async function reasonToContinue({ options, state }: Parts, signal: AbortSignal): Promise<string | undefined> {
  const { hooks, store, membership } = options;
  if (state.isShutDown) return undefined;
  for (const task of inProgress(store, membership.member)) {
    const refusal = await hooks()?.completed(task, signal);
    if (refusal !== undefined) return `Task ${task.id} is not done yet: ${refusal}`;
  }
  const verdict = await hooks()?.idle(signal);
  if (verdict?.type === "stopped") state.stopReason = verdict.reason;
  return verdict?.type === "blocked" ? verdict.reason : undefined;
}

function createStandby({
  options,
  state,
  mailbox,
  teamContext,
}: Parts & { readonly mailbox: Mailbox; readonly teamContext: TeamContext }): Standby {
  const { store, membership, idleLimitMs } = options;
  const { member: name } = membership;
  return {
    over(ending) {
      if (state.isShutDown) return { ...ending, status: "completed", reason: "shutdown" };
      if (state.stopReason === undefined) return undefined;
      return { ...ending, status: "stopped", reason: "stopped_by_hook", error: state.stopReason };
    },
    recorded: mailbox.recorded,
    async report(ending) {
      mailbox.giveBack();
      await mailbox.settled();
      await becomeIdle(ending, { options, state, teamContext });
      state.hasReported = false;
      state.rounds = 0;
      // Tasks may have become free while it worked.
      await offerTasks(store, claimableTasks(store.board.read()));
    },
    async wait(signal) {
      while ((await mailbox.wait({ signal, limitMs: idleLimitMs })) !== "timeout") {
        const mail = mailbox.take();
        if (mail === undefined) continue;
        // Beside the work: nothing but the journal comes between mail and the request that answers it.
        mailbox.markAfter(setMember(store, name, { isActive: true, state: "working" }));
        return mail;
      }
      return undefined;
    },
  };
}

/** The lead is notified of it once, with what the member said where it sent no message itself. */
async function becomeIdle(
  ending: RunEnding,
  { options, state, teamContext }: Parts & { readonly teamContext: TeamContext },
): Promise<void> {
  const { store, membership, bounded } = options;
  const { member: name } = membership;
  await setMember(store, name, { isActive: false, state: "idle" });
  const held = inProgress(store, name).map(({ id }) => id);
  const isSilent = !state.hasReported || ending.status !== "completed";
  const body: ProtocolMessage = {
    type: "idle_notification",
    idleReason: idleReasonOf(ending),
    ...(isSilent && ending.text.trim() !== "" ? { result: bounded(ending.text) } : {}),
    ...(ending.status === "completed" ? {} : { failureReason: ending.error ?? ending.reason }),
    ...(held.length === 0 ? {} : { tasksInProgress: held }),
  };
  await deliver(teamContext, leadName, { body });
}

function idleReasonOf({ status }: RunEnding): "available" | "failed" | "partial" {
  if (status === "completed") return "available";
  return status === "partial" ? "partial" : "failed";
}

function inProgress(store: TeamStore, owner: string): readonly BoardTask[] {
  return [...store.board.read().values()].filter(
    (task) => task.owner === owner && task.status === "in_progress",
  );
}

function memberOf(store: TeamStore, name: string): TeamMember | undefined {
  const config = store.config();
  return config === undefined ? undefined : findMember(config, name);
}

/** Changes the entry of a member, where it is still one. */
export async function setMember(store: TeamStore, name: string, change: Partial<TeamMember>): Promise<void> {
  await store.update((now) => {
    const member = now === undefined ? undefined : findMember(now, name);
    return now === undefined || member === undefined ? undefined : withMember(now, { ...member, ...change });
  });
}

/** The same tool, which reports when the lead was written to. */
function noticing(tool: Tool, onReport: () => void): Tool {
  return {
    ...tool,
    async call(input, context) {
      const outcome = await tool.call(input, context);
      const { to, recipient } = Object(input);
      if (outcome.isError !== true && [to, recipient].includes(leadName)) onReport();
      return outcome;
    },
  };
}

const planInput = t.object({ plan: t.string().min(1).describe("The whole plan, in Markdown.") });

/** A member in plan mode hands in its plan and waits, idle, for the answer of the lead. */
function planTools(teamContext: TeamContext, { approvedMode, member }: TeamMembership): readonly Tool[] {
  if (approvedMode === undefined) return [];
  const tool: Tool<t.Infer<typeof planInput>> = {
    name: handInPlanTool,
    description:
      "Hands in your plan to the lead, who approves it or rejects it with feedback. End your turn after it.",
    effect: "coordinate",
    origin: "builtin",
    input: planInput,
    async call({ plan }) {
      const store = await teamContext.ensureStore();
      if (memberOf(store, member)?.planApproved === true)
        return { content: "Your plan is approved already; carry it out.", data: { success: true } };
      const requestId = `plan-${randomUUID().slice(0, 8)}@${member}`;
      await setMember(store, member, { planRequest: requestId });
      const body = { type: "plan_approval_request", requestId, plan } as const;
      const sent = await deliver(teamContext, leadName, { body });
      if (sent.type === "refused") return { content: sent.reason, isError: true };
      const content = `The plan was handed in (request ${requestId}). End your turn; the answer comes as a message.`;
      return { content, data: { plan, awaitingLeaderApproval: true, requestId } };
    },
  };
  return [tool as Tool];
}
