import type { RunEvent } from "../../conversation/run-event.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { type AgentPlan, agentPath, type ChildPlan, type TeamMembership } from "../../planning/agent-plan.ts";
import type { TaskControl } from "../../tasks/task-manager.ts";
import { setMember } from "../../teams/member.ts";
import { openTeamStore } from "../../teams/team-store.ts";
import type { AgentServices } from "../agent/agent-services.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import {
  type MemberAnswer,
  type MemberQuestion,
  openPane,
  refuseMemberProcess,
  runMemberProcess,
} from "./run-member-process.ts";

export interface MemberProcesses {
  readonly refuse: (plan: ChildPlan) => string | undefined;
  readonly run: (plan: ChildPlan, control: TaskControl, signal: AbortSignal) => AsyncIterable<RunEvent>;
  readonly outputFile: (agentId: string) => string;
}

/** Members of a session's team in processes of their own; their questions reach the same program and person. */
export function createMemberProcesses(services: AgentServices, main: AgentPlan): MemberProcesses {
  const { runtime, asking } = services;
  const { paths } = runtime.discovered;
  const files = sessionFiles(paths.transcripts, main.sessionId);
  const canAsk = runtime.canUseTool !== undefined || asking !== undefined;
  return {
    refuse: (plan) => refuseMemberProcess(plan) ?? refusePorting(runtime) ?? refusePane(runtime),
    outputFile: (agentId) => files.agent(agentId).output,
    run: (plan, control, signal) =>
      runMemberProcess(plan, {
        control,
        signal,
        environment: { ...runtime.environment, ...runtime.approvals?.key },
        home: paths.home,
        trusted: runtime.trusted,
        options: runtime.portable?.() ?? {},
        tree: services.tree,
        asksPerson: asking !== undefined,
        report: runtime.notice,
        onStart(pid) {
          const { team } = plan.task;
          if (team !== undefined)
            void showMember(team, pid, runtime).catch((error: unknown) => runtime.notice?.(messageOf(error)));
        },
        ...(canAsk ? { ask: (question, stop) => answerFor(plan, question, { services, signal: stop }) } : {}),
      }),
  };
}

/** As for an agent of this process: the program first, then the person. */
async function answerFor(
  plan: ChildPlan,
  { tool, input, callId, reason }: MemberQuestion,
  { services, signal }: { readonly services: AgentServices; readonly signal: AbortSignal },
): Promise<MemberAnswer> {
  const { runtime, asking } = services;
  const permission = await runtime.canUseTool?.(tool, input, {
    signal,
    sessionId: plan.sessionId,
    agentId: plan.agent.id,
    agentPath: agentPath(plan, services.main),
    callId,
    toolUseID: callId,
    reason,
    suggestedRules: () => [],
    outsidePaths: () => [],
  });
  if (permission?.behavior === "allow" && (permission.updatedPermissions?.length ?? 0) > 0)
    return {
      behavior: "deny",
      message:
        "canUseTool cannot add rules for a teammate in a process of its own; answer without updatedPermissions",
    };
  if (permission !== undefined && permission.behavior !== "ask")
    return permission.behavior === "allow"
      ? { behavior: "allow", updatedInput: permission.updatedInput }
      : { behavior: "deny", message: permission.message };
  if (asking === undefined) return { behavior: "ask" };
  const answer = await asking.askFor(plan, { callId, tool, input, reason }, signal);
  if (answer.type === "allow") return { behavior: "allow" };
  const message = answer.message?.trim() ?? "";
  return {
    behavior: "deny",
    message: message === "" ? "the person refused it" : `the person refused it and says: ${message}`,
  };
}

/** Panes are asked for by name, and there is no tmux to open them in. */
function refusePane({ teams, environment }: RuntimeContext): string | undefined {
  if (teams?.mode !== "tmux" || (environment["TMUX"] ?? "") !== "") return undefined;
  return 'teammateMode "tmux" needs a tmux session around this one; start tmux first, or use "process"';
}

/** Writes down where a member runs, and opens its pane where panes are wanted. */
async function showMember(team: TeamMembership, pid: number, runtime: RuntimeContext): Promise<void> {
  const { paths } = runtime.discovered;
  const store = (runtime.teams?.open ?? openTeamStore)(paths, team.team, team.taskList);
  await setMember(store, team.member, { pid });
  if (runtime.teams?.mode !== "tmux") return;
  const tmuxPaneId = await openPane(team, { environment: runtime.environment, home: paths.home });
  await setMember(store, team.member, { tmuxPaneId });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What the program does around agents that only holds in its own process; undefined when nothing of it was asked for. */
function refusePorting({
  wrapsModels,
  wrapExecutor,
  idempotencyKey,
  live,
}: Pick<RuntimeContext, "wrapsModels" | "wrapExecutor" | "idempotencyKey" | "live">): string | undefined {
  const reasons = [
    wrapsModels === true ? "wrapModel" : undefined,
    wrapExecutor === undefined ? undefined : "wrapExecutor",
    idempotencyKey === undefined ? undefined : "idempotencyKey",
    live?.policy === undefined ? undefined : "rules that change while the session runs",
  ].filter((reason) => reason !== undefined);
  if (reasons.length === 0) return undefined;
  return `hooks and callbacks of this program do not reach another process (${reasons.join(", ")}); use teammateMode "in-process"`;
}
