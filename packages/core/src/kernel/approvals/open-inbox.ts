// @io

import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ApprovalsValue } from "@retinue/config/settings/read-environment.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { ApprovalSettings, RuntimeContext } from "../runtime-context.ts";
import type { GivenAnswer } from "./answer-question.ts";
import type { Approval, Approvals } from "./find-approvals.ts";
import { openSessionInbox, type SessionInbox } from "./session-inbox.ts";
import { createWebhook } from "./webhook.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Where questions wait: what the program specifies goes before what settings specify; where both are silent, calls are refused. The key of
 * the webhook leaves the environment in any case: who has it can answer questions in a person's name.
 */
export function readApprovals(
  option: "refuse" | "inbox" | undefined,
  settings: ApprovalsValue | undefined,
  whole: Environment,
): { readonly environment: Environment; readonly approvals?: ApprovalSettings } {
  const { webhook } = settings ?? {};
  const waits = (option ?? settings?.mode) === "inbox";
  if (webhook === undefined) return { environment: whole, ...(waits ? { approvals: { key: {} } } : {}) };
  const { [webhook.secretEnv]: key, ...environment } = whole;
  return { environment, ...(waits ? { approvals: { webhook, key: { [webhook.secretEnv]: key } } } : {}) };
}

/** The inbox of a session, where questions are to wait. */
export function openInbox(runtime: RuntimeContext, plan: AgentPlan): SessionInbox | undefined {
  const { approvals, notice, epochMs: now } = runtime;
  if (approvals === undefined) return undefined;
  if (!runtime.keepsTranscripts)
    throw new RetinueError(
      "invalid-option",
      "Questions can wait only in a session that keeps a transcript, and this one does not.",
      {
        advice: "Use `transcripts: true`, leave out --no-session-persistence, or turn waiting approvals off.",
      },
    );
  const { approvals: directory } = sessionFiles(runtime.discovered.paths.transcripts, plan.sessionId);
  const webhook = createWebhook(approvals.webhook, {
    directory,
    environment: approvals.key,
    now,
    notice,
  });
  const inbox = openSessionInbox({
    directory,
    sessionId: plan.sessionId,
    main: plan.agent,
    now,
    notice,
    asked: webhook?.send,
  });
  if (webhook === undefined) return inbox;
  return {
    ...inbox,
    [Symbol.dispose]() {
      webhook[Symbol.dispose]();
      inbox[Symbol.dispose]();
    },
  };
}

/** What a program can do with the approvals of its folder's sessions. */
export interface RuntimeApprovals {
  /** Questions that wait first, then the newest. */
  list(): Promise<readonly Approval[]>;
  /** Answers a question, by id or the beginning of it, also one of a session that another process runs. */
  answer(id: string, given: GivenAnswer, options?: { readonly by?: string }): Promise<Approval>;
  /** Takes a grant back. */
  revoke(id: string, options?: { readonly by?: string }): Promise<Approval>;
}

/** What it needs is loaded with the first call. */
export function runtimeApprovals(findTranscripts: () => Promise<string>): RuntimeApprovals {
  const open = async (): Promise<Approvals> => {
    const [{ findApprovals }, transcripts] = await Promise.all([
      import("./find-approvals.ts"),
      findTranscripts(),
    ]);
    return findApprovals(() => [transcripts], { now: Date.now });
  };
  return {
    list: async () => (await open()).list(),
    answer: async (id, given, { by = "program" } = {}) =>
      (await open()).answer(id, given, { by, via: "program" }),
    revoke: async (id, { by = "program" } = {}) => (await open()).revoke(id, { by, via: "program" }),
  };
}
