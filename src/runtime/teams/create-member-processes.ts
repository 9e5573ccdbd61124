import { sessionFiles } from "../../journal/session-files.ts";
import type { ChildPlan } from "../../planning/plan-run.ts";
import type { RunPlan } from "../../planning/run-plan.ts";
import { agentOutputFile } from "../../tasks/agent-output-file.ts";
import { setMember } from "../../teams/member.ts";
import type { AgentServices } from "../agent/equip-agent.ts";
import type { MemberProcesses } from "../children/decide-child.ts";
import { openListedStore } from "./find-team.ts";
import {
  type MemberAnswer,
  type MemberQuestion,
  refuseMemberProcess,
  runMemberProcess,
} from "./member-process.ts";

/** Members of a session's team in processes of their own; their questions reach the same program and person. */
export function createMemberProcesses(services: AgentServices, main: RunPlan): MemberProcesses {
  const { world, asking } = services;
  const { paths } = world.discovered;
  const files = sessionFiles(paths.transcripts, main.sessionId);
  const canAsk = world.canUseTool !== undefined || asking !== undefined;
  return {
    refuse: refuseMemberProcess,
    outputFile: (agentId) => agentOutputFile(files, agentId),
    run: (plan, control, signal) =>
      runMemberProcess(plan, {
        control,
        signal,
        environment: world.environment,
        home: paths.home,
        trusted: world.trusted,
        report: world.notice,
        onStart(pid) {
          const { team } = plan.task;
          if (team === undefined) return;
          void setMember(openListedStore(paths, team.team, team.taskList), team.member, { pid }).catch(
            () => undefined,
          );
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
  const { world, asking } = services;
  const said = await world.canUseTool?.(tool, input, {
    signal,
    agentId: plan.agent.id,
    callId,
    reason,
    suggestedRules: () => [],
    outsidePaths: () => [],
  });
  if (said !== undefined && said.behavior !== "ask")
    return said.behavior === "allow"
      ? { behavior: "allow", ...(said.updatedInput === undefined ? {} : { updatedInput: said.updatedInput }) }
      : { behavior: "deny", ...(said.message === undefined ? {} : { message: said.message }) };
  const answer = await asking?.askFor(plan, { callId, tool, input, reason }, signal);
  if (answer?.type === "allow") return { behavior: "allow" };
  const message = answer?.message?.trim() ?? "";
  return {
    behavior: "deny",
    message: message === "" ? "the person refused it" : `the person refused it and says: ${message}`,
  };
}
