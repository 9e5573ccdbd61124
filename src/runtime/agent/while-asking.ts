import type { Stopwatch } from "../../foundation/stopwatch.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "../../permissions/approver.ts";
import { createAskQueue } from "../../permissions/ask-queue.ts";
import { type PermissionMode, type PolicyRule, withMode } from "../../permissions/permission-policy.ts";
import { createSessionApprovals } from "../../permissions/rules/session-approvals.ts";
import type { ChildPlan } from "../../planning/plan-run.ts";
import type { RunPlan } from "../../planning/plan-tools.ts";
import { writeLocalRules } from "../../settings/write-local-rules.ts";
import type { ToolContext } from "../../tools/tool.ts";
import { type AskPerson, createAskPerson } from "./ask-person.ts";
import type { CanUseTool } from "./create-authorize.ts";

/** Around every wait for a person; the clocks of the one that waits is paused meanwhile. */
export type WhileAsking = <T>(wait: () => Promise<T>) => Promise<T>;

/** The agent's own clock, and for a child also that of the agent that waits for it. */
export function holding(...stopwatches: readonly Stopwatch[]): WhileAsking {
  return (wait) => stopwatches.reduce<typeof wait>((inner, stopwatch) => () => stopwatch.hold(inner), wait)();
}

export function askHeld(person: AskPerson, whileAsking: WhileAsking): AskPerson {
  return { ...person, ask: (call, options) => whileAsking(() => person.ask(call, options)) };
}

export function canUseToolHeld(canUseTool: CanUseTool, whileAsking: WhileAsking): CanUseTool {
  return (tool, input, context) => whileAsking(() => canUseTool(tool, input, context));
}

type MakeContext = (call: Pick<ToolContext, "callId" | "signal" | "progress">) => ToolContext;

/** A tool that puts a question to a person stops the clocks too. */
export function contextHeld(makeContext: MakeContext, whileAsking: WhileAsking): MakeContext {
  return (call) => {
    const context = makeContext(call);
    const { ask } = context.host;
    if (ask === undefined) return context;
    return {
      ...context,
      host: { ...context.host, ask: (questions, options) => whileAsking(() => ask(questions, options)) },
    };
  };
}

interface AskingOptions {
  readonly projectRoot: string;
  /** The mode of the main agent now, where a person can change it. */
  readonly mode?: (() => PermissionMode | undefined) | undefined;
}

/** One queue and one memory of answers for the main agent and all its children. */
export function openAsking(
  approver: Approver,
  main: RunPlan,
  { projectRoot, mode }: AskingOptions,
): {
  readonly forAgent: (plan: RunPlan) => AskPerson;
  readonly rulesFor: (agentId: string) => readonly PolicyRule[];
  /** Puts a question of an agent that runs in another process into the same queue. */
  readonly askFor: (
    plan: RunPlan,
    question: Omit<ApprovalRequest, "path" | "suggestedRules">,
    signal: AbortSignal,
  ) => Promise<ApprovalAnswer>;
} {
  const queue = createAskQueue(approver);
  const approvals = createSessionApprovals();
  const forAgent = (plan: RunPlan): AskPerson =>
    createAskPerson({
      queue,
      approvals,
      path: plan.agent.id === main.agent.id ? [main.agent] : [main.agent, shownAs(plan)],
      get policy() {
        return plan.agent.id === main.agent.id ? withMode(plan.policy, mode?.()) : plan.policy;
      },
      directory: plan.directory,
      async saveRules(rules) {
        const outcome = await writeLocalRules(projectRoot, { list: "allow", rules });
        return outcome.type === "saved" ? undefined : outcome.why;
      },
      ...(approver.notice === undefined ? {} : { notice: approver.notice }),
    });
  const askFor = (
    plan: RunPlan,
    question: Omit<ApprovalRequest, "path" | "suggestedRules">,
    signal: AbortSignal,
  ) => queue.ask({ ...question, path: [main.agent, shownAs(plan)], suggestedRules: [] }, { signal });
  return { forAgent, askFor, rulesFor: approvals.rulesFor };
}

/** A teammate is known by its name in the team. */
export function shownAs(plan: RunPlan): RunPlan["agent"] {
  const team = "task" in plan ? (plan as ChildPlan).task.team : undefined;
  return team === undefined ? plan.agent : { ...plan.agent, name: team.member };
}
