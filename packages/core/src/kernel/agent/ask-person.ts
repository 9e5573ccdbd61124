import type { ApprovalAnswer, ApprovalRequest, AskingAgent, CallPreview } from "@retinue/gate/approver.ts";
import type { AskQueue } from "@retinue/gate/ask-queue.ts";
import type { BatchQuote } from "@retinue/gate/batch-quote.ts";
import {
  decide,
  type PermissionPolicy,
  type PermissionRequest,
  type PolicyRule,
} from "@retinue/gate/decide.ts";
import type { ApprovedCall, SessionApprovals } from "@retinue/gate/grants/session-approvals.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { type CallSeal, digestSeal } from "@retinue/gate/seal-call.ts";
import { suggestRules } from "@retinue/gate/suggest-rules.ts";
import type { UsedApproval } from "../../conversation/run-event.ts";

export interface AskPersonDependencies {
  /** Shared by all agents of a session: a person sees one question at a time. */
  readonly queue: AskQueue;
  readonly approvals: SessionApprovals;
  readonly sessionId: string;
  /** From the main agent to the one whose calls these are. */
  readonly path: readonly AskingAgent[];
  readonly policy: PermissionPolicy;
  /** Where rules that a person grants start. */
  readonly directory: string;
  /** Writes rules into the project's local settings; says why it could not. */
  readonly saveRules: (rules: readonly string[]) => Promise<string | undefined>;
  /** Shows the person what could not be done as they said. */
  readonly notice?: (message: string) => void;
}

export interface CallToAsk {
  readonly callId: string;
  readonly request: PermissionRequest;
  readonly reason: string;
  /** The folder it starts in; absent: the agent's own. */
  readonly directory?: string;
  /** What an answer is bound to; absent: the paths of the request. */
  readonly seal?: CallSeal;
  /** The policy by which it was judged, where that is not the agent's own. */
  readonly policy?: PermissionPolicy;
  /** It is to be asked about, whatever was granted. */
  readonly asksEveryTime?: boolean;
  /** Of a batch of agents: what was quoted for it. */
  readonly quote?: BatchQuote | undefined;
  /** What it would do, for people. */
  readonly preview?: CallPreview | undefined;
}

export type UserAnswer =
  | {
      readonly type: "allowed";
      readonly approval?: UsedApproval;
      /** What was answered to the questions of the call itself. */
      readonly answers?: Readonly<Record<string, string>>;
    }
  | {
      readonly type: "denied";
      readonly reason: string;
      readonly stops: boolean;
      readonly approval?: UsedApproval;
    };

/** Puts the calls of one agent to a person, and remembers what was granted beyond the call. */
export interface AskPerson {
  /** The agent's policy with what people have granted since. */
  policy(): PermissionPolicy;
  /** True: a question waits until it is answered, also in the background. */
  readonly parks?: boolean;
  ask(call: CallToAsk, options: { readonly signal: AbortSignal }): Promise<UserAnswer>;
}

export function createAskPerson(dependencies: AskPersonDependencies): AskPerson {
  const { queue, approvals, path } = dependencies;
  const agentId = path.at(-1)?.id ?? "";
  const policy = (): PermissionPolicy => withRules(dependencies.policy, approvals.rulesFor(agentId));
  return {
    policy,
    async ask(call, { signal }) {
      const { request } = call;
      const answered = (): ApprovalAnswer | undefined =>
        call.quote === undefined &&
        (approvals.coversCall(agentId, approvedCall(call)) || decide(request, policy()).type === "allow")
          ? { type: "allow", for: "call" }
          : undefined;
      const question = describeQuestion(call, dependencies, policy());
      const answer = answered() ?? (await queue.ask(question, { signal, answered }));
      if (answer.type === "allow") {
        await remember(answer, { question, call, agentId }, dependencies);
        if (answer.for !== "call") queue.recheck();
        return { type: "allowed" };
      }
      const message = answer.message?.trim() ?? "";
      const reason = message === "" ? "the person refused it" : `the person refused it and says: ${message}`;
      return { type: "denied", reason, stops: answer.type === "deny-and-stop" };
    },
  };
}

function approvedCall({ request: { tool, input }, seal }: CallToAsk): ApprovedCall {
  return { tool, input, seal };
}

function withRules(policy: PermissionPolicy, rules: readonly PolicyRule[]): PermissionPolicy {
  return rules.length === 0 ? policy : { ...policy, allow: [...policy.allow, ...rules] };
}

function describeQuestion(
  { callId, request, reason, seal, quote, preview, directory: start }: CallToAsk,
  { sessionId, path, directory }: AskPersonDependencies,
  policy: PermissionPolicy,
): ApprovalRequest {
  const { tool, input } = request;
  // No rule answers what a batch may cost.
  const suggestedRules = quote === undefined ? suggestRules(request, policy, { anchor: directory }) : [];
  const bound = seal === undefined ? {} : { boundTo: digestSeal(seal, start ?? directory) };
  return {
    sessionId,
    agentId: path.at(-1)?.id ?? "",
    agentPath: path,
    callId,
    tool,
    input,
    reason,
    suggestedRules,
    quote,
    preview,
    ...bound,
  };
}

async function remember(
  answer: Extract<ApprovalAnswer, { readonly type: "allow" }>,
  asked: { readonly question: ApprovalRequest; readonly call: CallToAsk; readonly agentId: string },
  { approvals, directory, saveRules, notice }: AskPersonDependencies,
): Promise<void> {
  // What was quoted was asked about; the next batch is another one.
  if (asked.call.quote !== undefined) return;
  // In JavaScript `for` may be missing or mistyped; what is not clearly wider holds for this call alone.
  if (answer.for !== "agent" && answer.for !== "session" && answer.for !== "save") return;
  const holder = answer.for === "agent" ? asked.agentId : undefined;
  approvals.grantCall(approvedCall(asked.call), holder);
  const texts = answer.rules ?? asked.question.suggestedRules;
  const readings = texts.map((text) => ({ text, reading: parseRule(text, { list: "allow" }) }));
  const broken = readings.filter(({ reading }) => reading.type === "invalid").map(({ text }) => text);
  if (broken.length > 0)
    notice?.(`These are not valid rules, so only this call was allowed: ${broken.join(", ")}`);
  const rules = readings.flatMap(({ reading }) =>
    reading.type === "rule" && broken.length === 0 ? [{ rule: reading.rule, anchor: directory }] : [],
  );
  approvals.grantRules(rules, holder);
  if (answer.for !== "save" || rules.length === 0) return;
  const trouble = await saveRules(texts);
  if (trouble !== undefined) notice?.(`The rules apply to this session, but were not saved: ${trouble}`);
}
