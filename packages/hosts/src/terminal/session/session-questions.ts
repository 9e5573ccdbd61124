import { parsePermissionMode } from "@retinue/base/foundation/option-words.ts";
import { type BatchQuote, quoteRows } from "@retinue/core/inspection/describe-quote.ts";
import { previewEdit } from "@retinue/core/kernel/approvals/preview-edit.ts";
import type {
  Answer,
  Question as AskedQuestion,
  PermissionQuestion as PreviewedQuestion,
} from "@retinue/core/protocol/question.ts";
import { parseRule } from "../../../../../src/permissions.ts";
import type {
  FormField,
  FormQuestion,
  PermissionQuestion,
  Question,
  QuestionAnswer,
  SessionEvent,
} from "./terminal-session.ts";

/** Shown where a user writes to a conversation that is only watched. */
export const readOnly =
  "Another terminal has this conversation open, so it is read-only here. /fork continues it in a copy.";

/** A question of an agent as the terminal shows it; undefined for those that nobody answers here. */
export async function describeQuestion(
  asked: AskedQuestion,
  directory: string,
): Promise<Question | undefined> {
  const { id } = asked;
  switch (asked.kind) {
    case "permission": {
      const { path, callId, tool, input, reason, rules } = asked;
      if (asked.isBeforeBackground === true)
        return {
          kind: "background",
          id,
          ...askingAgent(path.slice(0, 1)),
          agent: String(input["subagent_type"] ?? "agent"),
          description: String(input["description"] ?? ""),
          tools: rules,
        };
      if (asked.quote !== undefined)
        return {
          kind: "permission",
          id,
          ...askingAgent(path),
          call: { id: callId, tool, input },
          ...quotedSubject(asked.quote, reason),
          rules: [],
          checkRule,
        };
      const diff = await previewEdit(tool, input, directory);
      return {
        kind: "permission",
        id,
        ...askingAgent(path),
        call: { id: callId, tool, input },
        subject: asked.preview === undefined ? subjectOf(input) : previewSubject(asked.preview, input),
        diff,
        reason,
        rules,
        checkRule,
      };
    }
    case "form": {
      const fields = asked.fields.map(({ multiSelect, ...rest }) => ({ ...rest, multiple: multiSelect }));
      return { kind: "form", id, ...askingAgent(asked.path), fields };
    }
    case "plan":
      return { kind: "plan", id, path: ["main"], plan: asked.plan ?? "" };
    case "elicitation":
      return undefined;
  }
}

/** What agents that start together would take and may do, in the place of their calls. */
export function quotedSubject(
  quote: BatchQuote,
  reason: string,
): Pick<PermissionQuestion, "subject" | "reason" | "starts"> {
  return { subject: quoteRows(quote).join("\n"), reason: quote.why ?? reason, starts: quote.agents.length };
}

/** What a call would do, then the values it gets, then all that would run. */
export function previewSubject(
  { rows, text }: NonNullable<PreviewedQuestion["preview"]>,
  { args }: Readonly<Record<string, unknown>>,
): string {
  const given = args === undefined ? [] : ["", `args: ${JSON.stringify(args)}`];
  return [...rows, ...given, "", text].join("\n");
}

/** What is asked while a session runs is never for the agents below as well; that is a scope of the inbox. */
const answerScopes = { session: "session", agent: "agent", tree: "agent", project: "save" } as const;

/** What the person answered, for the agent that asked. */
export function readAnswer(answer: QuestionAnswer): Answer {
  switch (answer.type) {
    case "allow-always":
      return { type: "allow", scope: answerScopes[answer.scope], rules: answer.rules };
    case "grant":
      if (answer.tools.length === 0) return { type: "deny" };
      return { type: "allow", scope: "agent", rules: answer.tools };
    case "approve-plan": {
      const mode = parsePermissionMode(answer.mode);
      return { type: "approve", plan: answer.plan, mode };
    }
    default:
      return answer;
  }
}

const heldQuestion = "Another terminal has this conversation open. What do you want to do here?";

/** What the terminal itself asks, such as what to do about a conversation that another process has open; no tree has these questions. */
export class OwnQuestions {
  readonly #report: (event: SessionEvent) => void;
  readonly #open = new Map<string, (answer: QuestionAnswer) => void>();
  #count = 0;

  constructor(report: (event: SessionEvent) => void) {
    this.#report = report;
  }

  /** False where the question is none of these. */
  answer(questionId: string, answer: QuestionAnswer): boolean {
    const resolve = this.#open.get(questionId);
    resolve?.(answer);
    return resolve !== undefined;
  }

  /** Undefined when the person closes the question. */
  async askAboutHeld(signal: AbortSignal): Promise<"watch" | "fork" | "open" | undefined> {
    const chosen = await this.#choose({ question: heldQuestion, header: "conversation" }, signal, [
      { label: "watch", description: "live and read-only" },
      { label: "fork", description: "continue in a copy; the other terminal keeps its own" },
      {
        label: "continue",
        description: "continue here, as soon as the other one is idle; it stops writing",
      },
    ]);
    if (chosen === "continue") return "open";
    return chosen === "watch" || chosen === "fork" ? chosen : undefined;
  }

  /** Whether the person wants to log in now. */
  async askToLogIn(server: string, signal: AbortSignal): Promise<boolean> {
    const question = `The MCP server ${server} wants you to log in, and is not there until then.`;
    const chosen = await this.#choose({ question, header: "login" }, signal, [
      { label: "log in", description: "in your browser" },
      { label: "not now", description: `/mcp login ${server} does it later` },
    ]);
    return chosen === "log in";
  }

  async #choose(
    asked: Pick<FormField, "question" | "header">,
    signal: AbortSignal,
    options: FormField["options"],
  ): Promise<string | undefined> {
    return (await this.choose({ ...asked, options }, signal))?.label;
  }

  /** The option that was chosen, with the text that it asked for; undefined when the person closes the question. */
  async choose(
    asked: Omit<FormField, "multiple">,
    signal: AbortSignal,
  ): Promise<{ readonly label: string; readonly text?: string } | undefined> {
    signal.throwIfAborted();
    this.#count += 1;
    const question: FormQuestion = {
      kind: "form",
      id: `own-question-${this.#count}`,
      path: ["retinue"],
      fields: [{ ...asked, multiple: false }],
      isChoice: true,
    };
    const { promise, resolve, reject } = Promise.withResolvers<QuestionAnswer>();
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    this.#open.set(question.id, resolve);
    this.#report({ type: "question-asked", question });
    try {
      const answer = await promise;
      const label = answer.type === "fields" ? answer.answers[asked.question] : undefined;
      if (answer.type !== "fields" || label === undefined) return undefined;
      return { label, text: answer.text };
    } finally {
      signal.removeEventListener("abort", abort);
      this.#open.delete(question.id);
      this.#report({ type: "question-closed", questionId: question.id });
    }
  }
}

export function checkRule(rule: string): string | undefined {
  const reading = parseRule(rule, { list: "allow" });
  return reading.type === "invalid" ? reading.reason : undefined;
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
