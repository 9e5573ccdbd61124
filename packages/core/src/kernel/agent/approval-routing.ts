import { abortable } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { writeLocalRules } from "@retinue/config/settings/write-local-rules.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "@retinue/gate/approver.ts";
import { createAskQueue } from "@retinue/gate/ask-queue.ts";
import { createSessionApprovals } from "@retinue/gate/grants/session-approvals.ts";
import { type PermissionMode, type PolicyRule, withMode } from "@retinue/gate/permission-policy.ts";
import { type AgentPlan, agentPath } from "../../planning/agent-plan.ts";
import type { TaskControl } from "../../tasks/task-manager.ts";
import type { Stopwatch } from "../../tasks/watch-run.ts";
import type { ToolContext } from "../../tools/tool.ts";
import { askingTool } from "../approvals/answer-question.ts";
import type { InboxAsker, SessionInbox } from "../approvals/session-inbox.ts";
import type { AgentOwn, AgentServices } from "./agent-services.ts";
import { type AskPerson, createAskPerson } from "./ask-person.ts";
import type { CanUseTool } from "./create-authorize.ts";
import type { AgentParts } from "./open-agent.ts";

/** Where calls of an agent run, and the people and programs that can be asked about them; clocks stop while they are. */
export function approvalRouting(
  plan: AgentPlan,
  { runtime, toolContext, environmentOf, asking, inbox, main }: AgentServices,
  { stopwatch, child, directory }: Pick<AgentOwn, "stopwatch" | "child"> & Pick<AgentParts, "directory">,
): Pick<AgentParts, "toolContext" | "searchPath" | "canUseTool" | "askPerson"> {
  const control = child?.control;
  const whileAsking = holding(stopwatch, ...(child === undefined ? [] : [child.waiting]));
  const parks = inbox !== undefined;
  const plain = toolContext(plan, directory);
  const context = parks ? withInbox(plan, plain, { inbox, control }) : withoutQuestions(plain, control);
  const { canUseTool } = runtime;
  const path = agentPath(plan, main);
  const named: CanUseTool | undefined =
    canUseTool && ((tool, input, call) => canUseTool(tool, input, { ...call, agentPath: path }));
  const program = control === undefined ? named : whileAttended(named, control, { parks });
  const person = routeApproval(plan, { person: asking?.forAgent(plan), inbox, control });
  return {
    searchPath: () => environmentOf(plan)["PATH"],
    // A tool that puts a question to a person stops the clocks too.
    toolContext(call) {
      const made = context(call);
      const { ask } = made.host;
      if (ask === undefined) return made;
      const held: typeof ask = (questions, options) => whileAsking(() => ask(questions, options));
      return { ...made, host: { ...made.host, ask: held } };
    },
    canUseTool: program && ((...call) => whileAsking(() => program(...call))),
    askPerson: person && { ...person, ask: (...call) => whileAsking(() => person.ask(...call)) },
  };
}

const isUnattended = "it needs approval, and agents in the background cannot ask";

/** A child that was moved to the background asks no more questions; before that the program answers first. */
function whileAttended(
  canUseTool: CanUseTool | undefined,
  control: TaskControl,
  { parks }: { readonly parks: boolean },
): CanUseTool {
  return async (tool, input, context) => {
    if (!control.attended()) return parks ? { behavior: "ask" } : { behavior: "deny", message: isUnattended };
    if (canUseTool === undefined) return { behavior: "ask" };
    const signal = AbortSignal.any([context.signal, control.unattended]);
    return refusedWhenDetached(abortable(canUseTool(tool, input, { ...context, signal }), signal), control, {
      behavior: "deny",
      message: isUnattended,
    });
  };
}

/** Grants that were given before, then the person who is there, then the inbox, where there is one. */
function routeApproval(
  plan: AgentPlan,
  {
    person,
    inbox,
    control,
  }: {
    readonly person: AskPerson | undefined;
    readonly inbox: SessionInbox | undefined;
    readonly control: TaskControl | undefined;
  },
): AskPerson | undefined {
  if (inbox === undefined)
    return person === undefined || control === undefined ? person : untilDetached(person, control);
  const asker = askerOf(plan, inbox);
  const park: AskPerson["ask"] = (call, options) => {
    const wait = () => inbox.ask(call, asker, options);
    return control?.park === undefined ? wait() : control.park(wait);
  };
  return {
    policy: person?.policy ?? (() => plan.policy),
    parks: true,
    async ask(call, options) {
      const granted = inbox.granted(call, asker);
      if (granted !== undefined) return granted;
      if (person === undefined || control?.attended() === false) return park(call, options);
      if (control === undefined) return person.ask(call, options);
      try {
        return await person.ask(call, { signal: AbortSignal.any([options.signal, control.unattended]) });
      } catch (error) {
        // Moved to the background: it is answered in the inbox now.
        if (options.signal.aborted || !control.unattended.aborted) throw error;
        return park(call, options);
      }
    },
  };
}

/** A question that is open when the child is moved to the background is answered no. */
function untilDetached(person: AskPerson, control: TaskControl): AskPerson {
  return {
    policy: person.policy,
    ask: (call, { signal }) =>
      refusedWhenDetached(
        person.ask(call, { signal: AbortSignal.any([signal, control.unattended]) }),
        control,
        { type: "denied", reason: isUnattended, stops: false },
      ),
  };
}

async function refusedWhenDetached<Answer>(
  answer: Promise<Answer>,
  control: TaskControl,
  no: Answer,
): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    if (control.unattended.aborted) return no;
    throw error;
  }
}

type MakeContext = (
  call: Pick<ToolContext, "callId" | "signal" | "progress" | "allowedBy" | "approvedPaths" | "judged">,
) => ToolContext;

function askerOf(plan: AgentPlan, { main }: SessionInbox): InboxAsker {
  return { path: agentPath(plan, main), policy: plan.policy, directory: plan.directory };
}

/** Questions of a tool wait in the inbox, where no person is there to answer them. */
function withInbox(
  plan: AgentPlan,
  makeContext: MakeContext,
  { inbox, control }: { readonly inbox: SessionInbox; readonly control: TaskControl | undefined },
): MakeContext {
  return (call) => {
    const context = makeContext(call);
    if (context.host.ask !== undefined && control?.attended() !== false) return context;
    const ask: NonNullable<ToolContext["host"]["ask"]> = async (questions, { signal }) => {
      const input = { questions };
      const request = { tool: askingTool, effect: "interact", input, paths: [] } as const;
      const reason = "the agent asks for an answer";
      const waiting = { callId: call.callId, request, reason, asksEveryTime: true };
      const wait = () => inbox.ask(waiting, askerOf(plan, inbox), { signal });
      const outcome = await (control?.park === undefined ? wait() : control.park(wait));
      if (outcome.type === "denied") throw new RetinueError("not-answered", outcome.reason);
      return outcome.answers ?? {};
    };
    return { ...context, host: { ...context.host, ask } };
  };
}

/** In the background a tool cannot ask; the agent continues. */
function withoutQuestions(makeContext: MakeContext, control: TaskControl | undefined): MakeContext {
  if (control === undefined) return makeContext;
  return (call) => {
    const context = makeContext(call);
    if (control.attended()) return context;
    const { ask: _ask, ...host } = context.host;
    return { ...context, host };
  };
}

/** Around every wait for a person; the clocks of the agent that waits are paused meanwhile. */
type WhileAsking = <T>(wait: () => Promise<T>) => Promise<T>;

/** The agent's own clock, and for a child also that of the agent that waits for it. */
export function holding(...stopwatches: readonly Stopwatch[]): WhileAsking {
  return (wait) => stopwatches.reduce<typeof wait>((inner, stopwatch) => () => stopwatch.hold(inner), wait)();
}

type MemberQuestion = Omit<ApprovalRequest, "sessionId" | "agentId" | "agentPath" | "suggestedRules">;

interface AskingOptions {
  readonly projectRoot: string;
  /** The mode of the main agent now, where a person can change it. */
  readonly mode?: (() => PermissionMode | undefined) | undefined;
}

/** One queue and one memory of answers for the main agent and all its children. */
export function openAsking(
  approver: Approver,
  main: AgentPlan,
  { projectRoot, mode }: AskingOptions,
): {
  readonly forAgent: (plan: AgentPlan) => AskPerson;
  readonly rulesFor: (agentId: string) => readonly PolicyRule[];
  /** Puts a question of an agent that runs in another process into the same queue. */
  readonly askFor: (
    plan: AgentPlan,
    question: MemberQuestion,
    signal: AbortSignal,
  ) => Promise<ApprovalAnswer>;
} {
  const queue = createAskQueue(approver);
  const approvals = createSessionApprovals();
  const forAgent = (plan: AgentPlan): AskPerson =>
    createAskPerson({
      queue,
      approvals,
      sessionId: main.sessionId,
      path: agentPath(plan, main.agent),
      get policy() {
        return plan.agent.id === main.agent.id ? withMode(plan.policy, mode?.()) : plan.policy;
      },
      directory: plan.directory,
      async saveRules(rules) {
        const outcome = await writeLocalRules(projectRoot, { list: "allow", rules });
        return outcome.type === "saved" ? undefined : outcome.why;
      },
      notice: approver.notice,
    });
  const askFor = (plan: AgentPlan, question: MemberQuestion, signal: AbortSignal) =>
    queue.ask(
      {
        ...question,
        sessionId: main.sessionId,
        agentId: plan.agent.id,
        agentPath: agentPath(plan, main.agent),
        suggestedRules: [],
      },
      { signal },
    );
  return { forAgent, askFor, rulesFor: approvals.rulesFor };
}
