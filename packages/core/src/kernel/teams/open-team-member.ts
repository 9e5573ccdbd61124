import { readLines } from "@retinue/base/storage/read-lines.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import type { ChildPlan, TeamMembership } from "../../planning/agent-plan.ts";
import type { Standby } from "../../tasks/run-agent.ts";
import type { TaskControl } from "../../tasks/task-manager.ts";
import type { BoardTask } from "../../teams/board.ts";
import { deliveredMail } from "../../teams/mailbox.ts";
import { type Member, type MemberHooks, openMember } from "../../teams/member.ts";
import { openTeamStore } from "../../teams/team-store.ts";
import { pageOf } from "../../tools/text-page.ts";
import type { EquippedAgent } from "../agent/agent-services.ts";
import type { Capability } from "../agent/open-agent.ts";
import type { RuntimeContext } from "../runtime-context.ts";

export interface OpenedMember {
  readonly capability: Capability;
  readonly standby: Standby;
  readonly attach: (equipped: Pick<EquippedAgent, "hooks" | "verifier">) => void;
}

/** What membership in a team adds to a child; the same in the lead's process and in one of its own. */
export async function openTeamMember(
  plan: ChildPlan,
  membership: TeamMembership,
  { runtime, control }: { readonly runtime: RuntimeContext; readonly control: TaskControl },
): Promise<OpenedMember> {
  const { paths } = runtime.discovered;
  const files = sessionFiles(paths.transcripts, plan.sessionId);
  const { transcript } = files.agent(plan.agent.id);
  const lines = plan.task.resumed ? await readLines(transcript).catch(() => undefined) : undefined;
  let equipped: Pick<EquippedAgent, "hooks" | "verifier"> | undefined;
  const member = openMember({
    store: (runtime.teams?.open ?? openTeamStore)(paths, membership.team, membership.taskList),
    membership,
    hooks: () => (equipped === undefined ? undefined : memberHooks(equipped, membership)),
    delivered: deliveredMail(lines?.values ?? []),
    commit: control.commit,
    report: runtime.notice,
    idleLimitMs: runtime.teams?.idleLimitMs ?? 0,
    bounded: (text) => bounded(text, files.agent(plan.agent.id).output),
  });
  return {
    capability: memberCapability(member, plan),
    standby: member.standby,
    attach(own) {
      equipped = own;
    },
  };
}

function memberCapability(member: Member, plan: ChildPlan): Capability {
  const granted = new Set(plan.tools.map(({ name }) => name));
  return {
    tools: member.tools.filter(({ name }) => granted.has(name)),
    messages() {
      const mail = member.drainMessages();
      return mail === undefined ? [] : [mail];
    },
    rights() {
      const mode = member.mode();
      return { allow: [], deny: [], mode };
    },
    beforeEnd: (_text, { signal }) => member.beforeIdle(signal),
    isFinished: member.isShutDown,
    dispose: () => Promise.resolve(member[Symbol.asyncDispose]()),
  };
}

function memberHooks(
  { hooks, verifier }: Pick<EquippedAgent, "hooks" | "verifier">,
  { member, team }: TeamMembership,
): MemberHooks {
  const never = new AbortController().signal;
  const about = ({ id: taskId, subject, description }: BoardTask) => ({
    taskId,
    subject,
    description,
    teammate: member,
    team,
  });
  const ask = async (event: "TaskCreated" | "TaskCompleted", task: BoardTask, signal: AbortSignal) => {
    const receipt = event === "TaskCompleted" ? { receipt: verifier.current() } : {};
    const verdict = await hooks?.team.fire(event, { ...about(task), ...receipt }, signal);
    return verdict === undefined || verdict.type === "passed" ? undefined : verdict.reason;
  };
  return {
    refuseUnchecked: verifier.refuseUnchecked,
    idle: async (signal) =>
      (await hooks?.team.fire("TeammateIdle", { teammate: member, team }, signal)) ?? { type: "passed" },
    created: (task) => ask("TaskCreated", task, never),
    completed: (task, signal = never) => ask("TaskCompleted", task, signal),
  };
}

/** A long text goes to the lead by its beginning and the file that has all of it. */
function bounded(text: string, file: string): string {
  const page = pageOf(text.trim());
  if (page.next === undefined) return page.text;
  return `${page.text}\n\n[cut at ${page.next} of ${text.length} characters; the whole text is in ${file}]`;
}
