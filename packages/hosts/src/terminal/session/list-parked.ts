import { userInfo } from "node:os";
import type { GivenAnswer } from "@retinue/core/kernel/approvals/answer-question.ts";
import type { Approval } from "@retinue/core/kernel/approvals/find-approvals.ts";
import { openApprovals, showApproval } from "../../commands/approvals.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { refuseAgents } from "../../shared/misuse.ts";
import { captureOutput } from "./session-pages.ts";
import { checkRule, previewSubject, quotedSubject, subjectOf } from "./session-questions.ts";
import type { GrantScope, ParkedQuestion, QuestionAnswer } from "./terminal-session.ts";

/** Questions in the inbox that wait for an answer, and grants that hold. */
export async function listParked(
  context: CommandContext,
  { everywhere }: { readonly everywhere: boolean },
): Promise<readonly ParkedQuestion[]> {
  const found = openApprovals(context.host, { everywhere }).list();
  return Promise.all(
    found
      .filter(({ state }) => state === "waiting" || state === "allowed")
      .map(async (approval) =>
        toParked(
          approval,
          await captureOutput(context, (own) => showApproval(own, approval.question.id, {})),
        ),
      ),
  );
}

export function answerParked({ host }: CommandContext, id: string, answer: QuestionAnswer): void {
  refuseAgents(host);
  const approvals = openApprovals(host, { everywhere: true });
  const { question } = approvals.find(id);
  approvals.answer(question.id, toGiven(answer), { ...author(), digest: question.digest });
}

export function revokeGrant({ host }: CommandContext, id: string): void {
  refuseAgents(host);
  openApprovals(host, { everywhere: true }).revoke(id, author());
}

function author() {
  return { by: userInfo().username, via: "terminal" };
}

function toGiven(answer: QuestionAnswer): GivenAnswer {
  if (answer.type === "allow") return { type: "allow", scope: "call" };
  if (answer.type === "allow-always") {
    // A grant of the inbox holds for the session at most; the panel offers nothing beyond it.
    const scope = answer.scope === "project" ? "session" : answer.scope;
    return { type: "allow", scope, rules: answer.rules };
  }
  const message = answer.type === "deny" ? answer.message : undefined;
  return { type: "deny", message };
}

const inboxScopes: readonly GrantScope[] = ["session", "agent", "tree"];

function toParked({ question, state }: Approval, text: string): ParkedQuestion {
  const { id, tool, input, places, reason, suggestedRules, everyTime, at, quote, preview } = question;
  const about =
    quote === undefined
      ? { subject: preview === undefined ? subjectOf(input) : previewSubject(preview, input), reason }
      : quotedSubject(quote, reason);
  const { subject } = about;
  const path = places[0]?.path ?? "";
  return {
    id,
    isWaiting: state === "waiting",
    tool,
    subject,
    agents: places.length === 1 ? path : `${places.length} agents`,
    at,
    text,
    question: {
      kind: "permission",
      id,
      path: [path],
      call: { id: places[0]?.call ?? "", tool, input },
      ...about,
      rules: suggestedRules,
      checkRule,
    },
    count: places.length,
    scopes: everyTime ? [] : inboxScopes,
  };
}
