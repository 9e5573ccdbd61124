import { isAbsolute } from "node:path";
import { createLockGroup } from "@retinue/base/storage/owner-lock.ts";
import type { UserMessage } from "../../conversation/message.ts";
import type { LoopPorts } from "../../loop/loop-ports.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { SpawnRequest } from "../../planning/agent-request.ts";
import type { LimitFacts } from "../../planning/plan-limits.ts";
import { hasEnded } from "../../protocol/agent-state.ts";
import { createChildMemory } from "../../tasks/child-record.ts";
import { lostMessageNotice } from "../../tasks/end-notice.ts";
import { findTasks } from "../../tasks/find-tasks.ts";
import { createChildMail, createMessenger } from "../../tasks/messenger.ts";
import type { Spawn, SpawnOutcome } from "../../tasks/spawn-outcome.ts";
import { createSendMessageTool } from "../../teams/create-send-message-tool.ts";
import type { Tool } from "../../tools/tool.ts";
import type { SessionSetup } from "../options/runtime-options.ts";
import type { BatchQuestion } from "../quotes/batch-question.ts";
import { openQuotes } from "../quotes/open-quotes.ts";
import { createMemberProcesses } from "../teams/create-member-processes.ts";
import { createParentMail, defaultBackgroundWaitMs, openTeamOf } from "../teams/create-parent-mail.ts";
import type { SessionTeamParts } from "../teams/create-team.ts";
import type { SessionTeam } from "../teams/session-team.ts";
import { createWorkflowTool, type WorkflowCalls } from "../workflows/create-workflow-tool.ts";
import { createSessionWorkflows, type SessionWorkflows } from "../workflows/session-workflows.ts";
import { type ChildSession, quotedPrice, sessionFacts } from "./child-session.ts";
import type { Capability } from "./open-agent.ts";
import { createNestedCount, openNested } from "./open-nested.ts";
import { openAgentTool, type Spawner } from "./open-spawner.ts";

/** What a session says about its children, besides what they share with it. */
export interface ChildrenParts
  extends Omit<
    ChildSession,
    "facts" | "memory" | "locks" | "nextQueued" | "processes" | "nest" | "nested" | "quotes"
  > {
  readonly limitFacts: LimitFacts;
  /** Whether there is a parent that reads what children in the background report. */
  readonly readsNotices: boolean;
  /** Whether named agents form a team, whose mail the parent or the program reads. */
  readonly leadsTeam: boolean;
  /** The team mail that the conversation has, and how it is kept. */
  readonly mail: Pick<SessionTeamParts, "delivered" | "commit">;
  readonly background: NonNullable<SessionSetup["background"]>;
  /** The saved workflows and the runs; absent where there are no workflows. */
  readonly workflows: Pick<SessionWorkflows, "saved" | "runs"> | undefined;
}

/** The children of a session: the tool that starts them, what they report to their parent, and the wait for the last one. */
export interface Children {
  /** What they share: for callers that plan, price or settle one without starting it. */
  readonly session: ChildSession;
  readonly tool: Tool;
  /** Writes to children, by id or name. */
  readonly messageTool: Tool;
  readonly spawner: Spawner;
  /** Asks about children that start together, where settings want it. */
  readonly batch: BatchQuestion;
  /** From now on a child that is resumed by a message is decided about like a call of the Agent tool. */
  readonly attach: (authorize: LoopPorts["authorize"]) => void;
  /** Queues a message for the parent, which reads it between its turns. */
  readonly notify: (message: UserMessage) => void;
  readonly takeMessages: () => readonly UserMessage[];
  /** The workflows of the session, and the tool that starts them; absent where there are none. */
  readonly workflows?: SessionWorkflows;
  readonly workflowCalls?: WorkflowCalls;
  /** The team that the session leads; absent where there are no teams. */
  readonly team?: SessionTeam;
  /** Before the parent ends: waits for children in the background, and returns their notices. */
  readonly beforeEnd: (signal: AbortSignal) => Promise<UserMessage | undefined>;
}

/** What children add to the main agent: the tools that start them and write to them, and their notices. */
export function childrenCapability(children: Children, plan: AgentPlan): Capability {
  const { tasks, services } = children.session;
  const granted = new Set(plan.tools.map(({ name }) => name));
  // A tool of the program takes the place of ours of the same name.
  const replaced = new Set(services.tools.tools.map(({ name }) => name));
  const beside = [children.messageTool, ...(children.team?.tools ?? [])];
  return {
    tools: [
      ...(granted.has("Agent") ? [children.tool] : []),
      ...(children.workflowCalls !== undefined && granted.has("Workflow") && !replaced.has("Workflow")
        ? [children.workflowCalls.tool]
        : []),
      ...beside.filter(({ name }) => granted.has(name) && !replaced.has(name)),
    ],
    messages: children.takeMessages,
    // Children in the background are waited for before hooks learn that the work is over.
    beforeEnd: (_text, { signal }) => children.beforeEnd(signal),
    ...children.batch.capability,
    beforeCall(next) {
      const shown = children.workflowCalls?.beforeCall(next) ?? next;
      return children.batch.capability.beforeCall?.(shown) ?? shown;
    },
    attach(authorization) {
      children.attach(authorization.authorize);
      children.batch.capability.attach?.(authorization);
    },
    async dispose() {
      await children.workflows?.runs.stopAll();
      await tasks[Symbol.asyncDispose]();
      await children.team?.[Symbol.asyncDispose]();
    },
  };
}

export function openChildren(parts: ChildrenParts): Children {
  const { tasks, parent, services } = parts;
  const { runtime } = services;
  const { variables: options } = runtime;
  const mail = createChildMail(parts.readsNotices ? undefined : 0);
  const facts = sessionFacts(services, parent, parts.limitFacts);
  let queued = 0;
  const nested = createNestedCount(runtime, parent.plan.sessionId);
  const quotes = openQuotes(runtime, {
    tools: services.tools.tools,
    priceOf: ({ chosenModel }) => quotedPrice(chosenModel, runtime, parent),
  });
  const session: ChildSession = {
    ...parts,
    facts,
    quotes,
    nest: openNested,
    nested,
    memory: createChildMemory(),
    locks: createLockGroup(),
    nextQueued() {
      queued += 1;
      return queued;
    },
    ...(runtime.teams === undefined || !parts.leadsTeam
      ? {}
      : { processes: createMemberProcesses(services, parent.plan) }),
  };
  const { spawner, batch, tool } = openAgentTool(session, {
    notify: mail.put,
    teammateEnded: async (plan, state, text) => team?.ended(plan, state, text),
    teammateSettled: () => team?.look(),
    teams: runtime.teams !== undefined && parts.leadsTeam,
    spawn: (request, own) => (team?.spawn ?? spawner.spawn)(batch.quoted(request), own),
  });
  const workflows = openWorkflows(parts, {
    session,
    notify: mail.put,
    ask: batch.ask,
  });
  const starts = authorizeStarts(tool, spawner.spawn);
  const team = openTeamOf(parts, {
    spawn: spawner.spawn,
    authorizedSpawn: starts.start,
    hasPendingNotices: spawner.hasPendingTeamNotices,
  });
  const { transcripts } = runtime.discovered.paths;
  const isRunning = (id: string): boolean => tasks.list().some((task) => task.id === id && !hasEnded(task));
  const messenger = createMessenger({
    tasks,
    find: () =>
      runtime.keepsTranscripts
        ? findTasks(transcripts, { sessionId: parent.plan.sessionId })
        : Promise.resolve([]),
    resume: starts.start,
    onLost: ({ id }, reason) => mail.put(lostMessageNotice(id, reason)),
  });
  return {
    session,
    spawner,
    batch,
    attach: starts.attach,
    notify: mail.put,
    tool,
    ...workflows,
    messageTool: createSendMessageTool({ messenger, teamContext: team?.teamContext }),
    team,
    ...createParentMail({
      mail,
      team,
      isBusy: () =>
        workflows.workflows?.runs.isBusy() === true ||
        spawner.hasPendingNotices() ||
        tasks.list().some((task) => task.background && !hasEnded(task)),
      // A workflow takes as long as it takes.
      hasQuestions: () =>
        workflows.workflows?.runs.isBusy() === true ||
        services.inbox?.isAsking(isRunning) === true ||
        tasks.list().some((task) => task.waitingForQuota !== undefined && !hasEnded(task)),
      limitMs: options.printBackgroundWaitMs ?? defaultBackgroundWaitMs,
      notice: runtime.notice,
      reading: parts.services.runtime.live?.reading,
      background: parts.background,
    }),
  };
}

function openWorkflows(
  { workflows, parent, services: { runtime } }: ChildrenParts,
  own: Pick<Parameters<typeof createSessionWorkflows>[0], "session" | "notify" | "ask">,
): Pick<Children, "workflows" | "workflowCalls"> {
  if (workflows === undefined) return {};
  const session = createSessionWorkflows({ ...workflows, ...own });
  const workflowCalls = createWorkflowTool({
    workflows: session,
    size: runtime.discovered.settings.settings.plain.workflowSizeGuideline,
    // What is set for this session alone is set for this folder.
    isTrusted: () =>
      runtime.trusted ||
      parent.plan.policy.allow.some(
        ({ rule, from = "" }) => rule.canonicalTool === "Workflow" && !isAbsolute(from),
      ),
    transcripts: runtime.discovered.paths.transcripts,
  });
  return { workflows: session, workflowCalls };
}

/** Starts of children that no call of the Agent tool asks for, decided about as if one did. */
function authorizeStarts(tool: Tool, spawn: Spawn) {
  let authorize: LoopPorts["authorize"] | undefined;
  return {
    attach(port: LoopPorts["authorize"]): void {
      authorize = port;
    },
    async start(request: SpawnRequest, { signal }: { readonly signal: AbortSignal }): Promise<SpawnOutcome> {
      const input = {
        description: request.description,
        prompt: request.prompt,
        subagent_type: request.agentType,
        resume: request.resume,
        run_in_background: request.background,
      };
      const call = { type: "tool_use", id: request.callId ?? "message", name: tool.name, input } as const;
      const authorization = await authorize?.({ call, tool, input }, { signal });
      if (authorization?.type !== "allowed")
        return { type: "refused", reason: authorization?.reason ?? "The agent is not ready yet." };
      return spawn(request, { signal });
    },
  };
}
