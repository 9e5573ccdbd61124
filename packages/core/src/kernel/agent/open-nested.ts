import type { InterruptedAgent } from "../../conversation/interrupted-agent.ts";
import type { UserMessage } from "../../conversation/message.ts";
import { loadSession } from "../../journal/session-choices.ts";
import type { Model } from "../../models/model.ts";
import type { ChildPlan } from "../../planning/agent-plan.ts";
import type { ChildPlanned, SpawnRequest } from "../../planning/agent-request.ts";
import { hasEnded } from "../../protocol/agent-state.ts";
import { carveBudget } from "../../tasks/carve-budget.ts";
import { interruptedNote } from "../../tasks/end-notice.ts";
import { isInterrupted } from "../../tasks/find-interrupted.ts";
import { findTasks } from "../../tasks/find-tasks.ts";
import { createChildMail } from "../../tasks/messenger.ts";
import { findLostNotices, interruptedAgent, readReportedAgents } from "../../tasks/reported-agents.ts";
import type { TaskControl } from "../../tasks/task-manager.ts";
import { endsSession } from "../../tasks/task-manager.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import { type ChildSession, type NestedCount, type NestingAgent, sessionFacts } from "./child-session.ts";
import type { Capability } from "./open-agent.ts";
import { openAgentTool } from "./open-spawner.ts";
import { planChild } from "./plan-child.ts";

/** What a subagent gets to start agents: the Agent tool for those it names, their reports, and their end with its own. */
export async function openNested(outer: ChildSession, agent: NestingAgent): Promise<Capability> {
  const { plan, control } = agent;
  const { tasks } = outer;
  const session = sessionBelow(outer, agent);
  const mail = createChildMail();
  const { spawner, batch, tool } = openAgentTool(session, {
    notify: mail.put,
    spawn: (request, own) =>
      waiting(control, async () => {
        const refusal = await outer.nested.take(plan, request);
        if (refusal !== undefined) return { type: "refused", reason: refusal };
        const outcome = await spawner.spawn(batch.quoted(request), own);
        if (outcome.type === "refused") outer.nested.giveBack(request);
        return outcome;
      }),
  });
  const own = () => tasks.list().filter(({ parentId }) => parentId === plan.agent.id);
  const isBusy = () =>
    spawner.hasPendingNotices() || own().some((task) => task.background && !hasEnded(task));
  const stopListening = tasks.onEvent(({ parentId }) => {
    if (parentId === plan.agent.id) session.showLife();
  });
  for (const message of await messagesAfterCrash(plan, outer)) mail.put(message);
  return {
    ...batch.capability,
    tools: [tool],
    messages: mail.takeAll,
    async beforeEnd(_text, { signal }) {
      // Its end is the end of those it has started, so it waits for them.
      if (mail.isEmpty() && isBusy())
        await waiting(control, async () => {
          while (mail.isEmpty() && isBusy() && !signal.aborted) await mail.wait(signal, lookAgainMs);
        });
      return mail.takeOne();
    },
    async dispose(stopped) {
      stopListening();
      const by = stopped?.aborted === true && endsSession(stopped.reason) ? "session" : "parent";
      const running = own().filter((task) => !hasEnded(task));
      await Promise.all(running.map(({ id }) => tasks.stop(id, by)));
    },
  };
}

/** A notice wakes the agent that waits; this is only for one that was missed. */
const lookAgainMs = 5_000;

/** Gives its place to those it waits for. */
function waiting<T>(control: TaskControl, wait: () => Promise<T>): Promise<T> {
  if (control.park === undefined) return wait();
  return control.park(wait, { forChildren: true, activity: "waiting for its agents" });
}

/** What the agents below share: everything of the session, but for what is carved out of the agent above them. */
function sessionBelow(
  outer: ChildSession,
  { plan, model, control, stopwatch, budget }: NestingAgent,
): ChildSession & { readonly showLife: () => void } {
  const { services } = outer;
  const { limits } = outer.facts;
  const { unknownPrice = "allow" } = limits?.settings ?? {};
  const tree = carveBudget(budget, { name: plan.agent.name, tree: services.tree, unknownPrice });
  const { processes: _processes, ...shared } = outer;
  return {
    ...shared,
    ...planningBelow(outer, plan, model),
    services: { ...services, tree },
    parent: {
      plan,
      model,
      // While a person is asked, the clocks of all agents above stop.
      stopwatch: { ...stopwatch, hold: (wait) => stopwatch.hold(() => outer.parent.stopwatch.hold(wait)) },
    },
    control,
    showLife() {
      control.showLife?.();
      outer.showLife?.();
    },
  };
}

function planningBelow(outer: ChildSession, plan: ChildPlan, model: Model) {
  const facts = sessionFacts(outer.services, { plan, model }, outer.facts.limits ?? {});
  return { facts, messages: () => [] };
}

/** What an agent would be that a planned subagent starts. Starts nothing. */
export function planBelow(
  request: SpawnRequest,
  outer: ChildSession,
  plan: ChildPlan,
): Promise<ChildPlanned> {
  const { model, stopwatch } = outer.parent;
  const { processes: _processes, ...shared } = outer;
  return planChild(request, {
    ...shared,
    ...planningBelow(outer, plan, model),
    parent: { plan, model, stopwatch },
  });
}

/** When it is resumed: what became of the agents in the background that it had started. */
async function messagesAfterCrash(
  { task, agent, sessionId }: ChildPlan,
  { services: { runtime, files } }: ChildSession,
): Promise<readonly UserMessage[]> {
  if (!task.resumed || !runtime.keepsTranscripts) return [];
  const { transcripts } = runtime.discovered.paths;
  const found = await findTasks(transcripts, { sessionId });
  const own = found.filter(({ parentId }) => parentId === agent.id);
  if (own.length === 0) return [];
  const { records } = await loadSession(files.agent(agent.id).transcript, { sidechain: true });
  const received = readReportedAgents(records);
  const lost = await findLostNotices(
    own,
    { ...received, answered: new Set() },
    (id) => files.agent(id).output,
  );
  const cutOff = own.filter(isInterrupted).flatMap((one): readonly InterruptedAgent[] => {
    if ((received.reportedAt.get(one.id) ?? 0) >= one.lastSignAt) return [];
    // Those it waited for are in the answers of the calls that were cut off.
    if (!one.background && !received.launched.has(one.id)) return [];
    return [
      interruptedAgent(one, { background: true, standing: one.canResume === true ? "waiting" : "lost" }),
    ];
  });
  return [...lost, ...(cutOff.length === 0 ? [] : [interruptedNote(cutOff)])];
}

export function createNestedCount(runtime: RuntimeContext, sessionId: string): NestedCount {
  let before: Promise<number> | undefined;
  let started = 0;
  let order = 0;
  const countEarlier = async (): Promise<number> => {
    if (!runtime.keepsTranscripts) return 0;
    const found = await findTasks(runtime.discovered.paths.transcripts, { sessionId });
    return found.filter(({ parentId }) => parentId !== undefined).length;
  };
  return {
    nextOrder() {
      order += 1;
      return order;
    },
    async take({ nesting }, { resume }) {
      // One that continues is no new one.
      if (resume !== undefined) return undefined;
      before ??= countEarlier();
      const earlier = await before;
      const most = nesting?.agents.value ?? 0;
      if (earlier + started >= most)
        return `The agent was not started: subagents of this session have started ${earlier + started} agents, and ${most} is the most (limits.nested). Do the work without another agent.`;
      started += 1;
      return undefined;
    },
    giveBack({ resume }) {
      if (resume === undefined) started -= 1;
    },
  };
}
