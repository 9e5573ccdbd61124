import { previewEdit } from "@retinue/core/kernel/approvals/preview-edit.ts";
import type { ApprovalAnswer, ApprovalRequest, ToolHost } from "../../../../../src/index.ts";
import { parseRule } from "../../../../../src/permissions.ts";
import type { PermissionQuestion, Question, QuestionAnswer, SessionEvent } from "./terminal-session.ts";

type AskedQuestions = Parameters<NonNullable<ToolHost["ask"]>>[0];

interface OpenQuestion {
  readonly question: Question;
  readonly resolve: (answer: QuestionAnswer) => void;
}

/** Said where somebody writes to a conversation that is only watched. */
export const readOnly =
  "Another terminal has this conversation open, so it is read-only here. /fork continues it in a copy.";

export interface PlanDecision {
  readonly isApproved: boolean;
  readonly plan: string;
  readonly mode: string;
  readonly message: string;
}

/** Questions of agents to the person: each is reported as an event and waits until it is answered or its run is stopped. */
export class SessionQuestions {
  readonly #report: (event: SessionEvent) => void;
  readonly #directory: string;
  readonly #open = new Map<string, OpenQuestion>();
  #count = 0;

  constructor(report: (event: SessionEvent) => void, directory: string) {
    this.#report = report;
    this.#directory = directory;
  }

  answer(questionId: string, answer: QuestionAnswer): void {
    this.#open.get(questionId)?.resolve(answer);
  }

  /** Asks whether a call may run, or what an agent may use before it goes to the background. */
  async approve(
    request: ApprovalRequest,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<ApprovalAnswer> {
    const asks = isBeforeBackground(request);
    const answer = await this.#ask(
      asks ? this.#backgroundQuestion(request) : await this.#permissionQuestion(request),
      signal,
    );
    switch (answer.type) {
      case "allow":
        return { type: "allow", for: "call" };
      case "allow-always":
        return {
          type: "allow",
          for: approvalSpans[answer.scope],
          rules: answer.rules,
        };
      case "grant":
        return answer.tools.length === 0
          ? { type: "deny" }
          : { type: "allow", for: "agent", rules: answer.tools };
      default:
        return answer.type === "deny" && answer.message !== undefined
          ? { type: "deny", message: answer.message }
          : { type: "deny" };
    }
  }

  /** AskUserQuestion. The one that closes it without an answer lets the agent decide. */
  async askForm(
    questions: AskedQuestions,
    { signal, agent }: { readonly signal: AbortSignal; readonly agent?: { id: string; name: string } },
  ): Promise<Readonly<Record<string, string>>> {
    const answer = await this.#ask(
      {
        kind: "form",
        id: this.#newId(),
        ...askingAgent(agent === undefined ? [] : [agent]),
        fields: questions.map(({ multiSelect, ...rest }) => ({ ...rest, multiple: multiSelect })),
      },
      signal,
    );
    if (answer.type === "fields") return answer.answers;
    throw new Error("the person closed the questions without an answer");
  }

  /** What to do about a conversation that another process has open; undefined when the person closes the question. */
  async askHeld(signal: AbortSignal): Promise<"watch" | "fork" | "open" | undefined> {
    const question = "Another terminal has this conversation open. What do you want to do here?";
    const options = [
      { label: "watch", description: "live and read-only" },
      { label: "fork", description: "continue in a copy; the other terminal keeps its own" },
      {
        label: "continue",
        description: "here, as soon as the other one works on nothing; it writes no more",
      },
    ];
    const fields = [{ question, header: "conversation", options, multiple: false }];
    const answer = await this.#ask(
      { kind: "form", id: this.#newId(), path: ["retinue"], fields, isChoice: true },
      signal,
    );
    const chosen = answer.type === "fields" ? answer.answers[question] : undefined;
    if (chosen === "continue") return "open";
    return chosen === "watch" || chosen === "fork" ? chosen : undefined;
  }

  async askPlan(plan: string, signal: AbortSignal): Promise<PlanDecision> {
    const answer = await this.#ask({ kind: "plan", id: this.#newId(), path: ["main"], plan }, signal);
    if (answer.type === "approve-plan")
      return { isApproved: true, plan: answer.plan, mode: answer.mode, message: "" };
    const message = answer.type === "deny" ? (answer.message ?? "") : "";
    return { isApproved: false, plan, mode: "plan", message };
  }

  async #ask(question: Question, signal: AbortSignal): Promise<QuestionAnswer> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<QuestionAnswer>();
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    this.#open.set(question.id, { question, resolve });
    this.#report({ type: "question-asked", question });
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", abort);
      this.#open.delete(question.id);
      this.#report({ type: "question-closed", questionId: question.id });
    }
  }

  async #permissionQuestion(request: ApprovalRequest): Promise<PermissionQuestion> {
    const { callId, tool, input, reason, suggestedRules } = request;
    const diff = await previewEdit(tool, input, this.#directory);
    return {
      kind: "permission",
      id: this.#newId(),
      ...askingAgent(request.agentPath),
      call: { id: callId, tool, input },
      subject: subjectOf(input),
      ...(diff === undefined ? {} : { diff }),
      reason,
      rules: suggestedRules,
      checkRule,
    };
  }

  #backgroundQuestion({ agentPath, input, suggestedRules }: ApprovalRequest): Question {
    return {
      kind: "background",
      id: this.#newId(),
      ...askingAgent(agentPath.slice(0, 1)),
      agent: String(input["subagent_type"] ?? "agent"),
      description: String(input["description"] ?? ""),
      tools: suggestedRules,
    };
  }

  #newId(): string {
    this.#count += 1;
    return `question-${this.#count}`;
  }
}

/** What is asked while a session runs is never for the agents below as well; that is a scope of the inbox. */
const approvalSpans = { session: "session", agent: "agent", tree: "agent", project: "save" } as const;

export function checkRule(rule: string): string | undefined {
  const reading = parseRule(rule, { list: "allow" });
  return reading.type === "invalid" ? reading.reason : undefined;
}

/** Asked for the agent itself before it starts, not for a call of it. */
function isBeforeBackground({ tool, agentPath, suggestedRules }: ApprovalRequest): boolean {
  return tool === "Agent" && agentPath.length > 1 && suggestedRules.length > 0;
}

function askingAgent(path: readonly { readonly id: string; readonly name: string }[]): {
  readonly path: readonly string[];
  readonly agentId?: string;
} {
  const last = path.at(-1);
  const names = path.length === 0 ? ["main"] : path.map(({ name }) => name);
  return { path: names, ...(last === undefined || last.id === "main" ? {} : { agentId: last.id }) };
}

/** Exactly what would run: the command, address or file first, then every other field; what only describes it is left out. */
export function subjectOf(input: Readonly<Record<string, unknown>>): string {
  const main = ["command", "url", "file_path", "notebook_path", "query"].find((key) => {
    const value = input[key];
    return typeof value === "string" && value !== "";
  });
  if (main === undefined) return JSON.stringify(input, undefined, 2);
  const others = Object.entries(input).filter(
    ([key, value]) => key !== main && key !== "description" && value !== undefined,
  );
  return [String(input[main]), ...others.map(([key, value]) => `${key}: ${JSON.stringify(value)}`)].join(
    "\n",
  );
}
