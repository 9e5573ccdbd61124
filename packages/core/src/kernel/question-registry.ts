import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Approver } from "@retinue/gate/approver.ts";
import type { McpConnectionOptions } from "../mcp/mcp-connections.ts";
import type { RuleUpdate } from "../protocol/op.ts";
import type { Answer, PermissionQuestion, Question, QuestionId } from "../protocol/question.ts";
import type { ToolHost } from "../tools/tool.ts";
import type { CanUseTool } from "./agent/create-authorize.ts";

/** A question before it has an id. */
type NewQuestion = Question extends infer Each ? (Each extends Question ? Omit<Each, "id"> : never) : never;

export interface QuestionRegistryOptions {
  readonly asked: (question: Question) => void;
  readonly closed: (question: Question) => void;
  /** Follows a change of rights that came with an answer. */
  readonly update: (update: RuleUpdate) => Promise<void>;
  readonly notice: (text: string) => void;
  /** An update that came with an answer could not be followed. */
  readonly updateFailed: (text: string) => void;
}

/** All questions of a tree to people and programs. Each waits until it is answered or its run is stopped. */
export interface QuestionRegistry {
  open(): readonly Question[];
  /** Throws where there is no such question any more. */
  answer(id: QuestionId, answer: Answer): void;
  /** Rejects with the reason of the signal. */
  ask(question: NewQuestion, signal: AbortSignal): Promise<Answer>;
  /** Asks about a call before any approver, as a program is asked. */
  readonly canUseTool: CanUseTool;
  /** Asks about a call as a person is asked: what is granted beyond the call is kept by the session. */
  readonly approver: Approver;
  readonly askForm: NonNullable<ToolHost["ask"]>;
  readonly elicit: NonNullable<McpConnectionOptions["ask"]>;
}

const mainPath = [{ id: "main", name: "main" }];

export function createQuestionRegistry(options: QuestionRegistryOptions): QuestionRegistry {
  const open = new Map<QuestionId, { question: Question; resolve: (answer: Answer) => void }>();
  let count = 0;

  const ask: QuestionRegistry["ask"] = async (asked, signal) => {
    signal.throwIfAborted();
    count += 1;
    const question: Question = { ...asked, id: `question-${count}` };
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    open.set(question.id, { question, resolve });
    options.asked(question);
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", abort);
      open.delete(question.id);
      options.closed(question);
    }
  };

  async function follow(updates: readonly RuleUpdate[] = []): Promise<void> {
    for (const update of updates)
      await options
        .update(update)
        .catch((error: unknown) =>
          options.updateFailed(
            `A permission update was not applied: ${error instanceof Error ? error.message : String(error)}`,
          ),
        );
  }

  return {
    open: () => [...open.values()].map(({ question }) => question),
    answer(id, answer) {
      const found = open.get(id);
      if (found === undefined) throw new RetinueError("unknown-question", `There is no open question ${id}.`);
      found.resolve(answer);
    },
    ask,
    async canUseTool(tool, input, context) {
      const { agentPath: path, callId, reason, server, signal } = context;
      const about = { path, callId, tool, input, reason, server, ...shownOf(context) };
      const rules = context.suggestedRules();
      const outsidePaths = context.outsidePaths();
      const answer = await ask({ kind: "permission", ...about, rules, outsidePaths }, signal);
      if (answer.type !== "allow") {
        const { message, stop } = denialOf(answer);
        return {
          behavior: "deny",
          message: message === undefined || message === "" ? "the host refused it" : message,
          ...(stop === true ? { interrupt: true } : {}),
        };
      }
      await follow(answer.updates);
      return { behavior: "allow", updatedInput: answer.input };
    },
    approver: {
      isConcurrent: true,
      notice: options.notice,
      async approve(request, { signal }) {
        const { agentPath: path, callId, tool, input, reason, suggestedRules: rules } = request;
        const isBeforeBackground = tool === "Agent" && path.length > 1 && rules.length > 0;
        const asked = { path, callId, tool, input, reason, rules, ...shownOf(request) };
        const answer = await ask(
          { kind: "permission", ...asked, ...(isBeforeBackground ? { isBeforeBackground } : {}) },
          signal,
        );
        if (answer.type === "allow") {
          const { scope = "call", rules: chosen } = answer;
          if (scope === "call") return { type: "allow", for: scope };
          return { type: "allow", for: scope, rules: chosen };
        }
        const { message, stop } = denialOf(answer);
        const refusal = message === undefined ? {} : { message };
        return stop === true ? { type: "deny-and-stop", ...refusal } : { type: "deny", ...refusal };
      },
    },
    async askForm(fields, { signal, agentPath: path = mainPath, callId }) {
      const answer = await ask({ kind: "form", path, callId, fields }, signal);
      if (answer.type === "fields") return answer.answers;
      const message = denialOf(answer).message ?? "the person closed the questions without an answer";
      throw new RetinueError("question-declined", message);
    },
    async elicit(question, { signal }) {
      const answer = await ask({ kind: "elicitation", path: mainPath, ...question }, signal);
      if (answer.type !== "elicited") return { action: "decline" };
      const { action, content } = answer;
      if (action !== "accept" || content === undefined) return { action };
      const entries = Object.entries(content).map(
        ([name, value]) => [name, typeof value === "object" ? [...value] : value] as const,
      );
      return { action, content: Object.fromEntries(entries) };
    },
  };
}

/** What does not fit a question is no yes. */
function denialOf(answer: Answer): {
  readonly message?: string | undefined;
  readonly stop?: boolean | undefined;
} {
  return answer.type === "deny" ? answer : {};
}

/** What is shown in the place of the input, or beside it. */
function shownOf({ quote, preview }: Pick<PermissionQuestion, "quote" | "preview">) {
  return { quote, preview };
}
