import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { CanUseTool } from "@retinue/core/kernel/agent/create-authorize.ts";
import { describeAskingPath } from "@retinue/gate/approver.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver, ToolHost } from "../../../../src/index.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import type { FormField, FormQuestion, FormReply } from "./form-question.ts";
import type { PendingCall } from "./pending-call.ts";

type AskedQuestions = Parameters<NonNullable<ToolHost["ask"]>>[0];

/** All calls that are under way, and how what their agents ask finds the client that waits for them. */
export interface PendingCalls {
  add(pendingCall: PendingCall): void;
  remove(id: string): void;
  find(id: string): PendingCall | undefined;
  /** Refuses immediately where the client cannot be asked, so that the reason is not taken for a person's. */
  readonly canUseTool: CanUseTool;
  readonly approver: Approver;
  readonly ask: NonNullable<ToolHost["ask"]>;
  stopAll(): Promise<void>;
}

export function createPendingCalls(): PendingCalls {
  const pendingCalls = new Map<string, PendingCall>();
  const ofAgent = (agentId: string): PendingCall | undefined =>
    [...pendingCalls.values()].find(
      (pendingCall) => pendingCall.tasks.get(agentId)?.callId === pendingCall.id,
    );

  return {
    add: (pendingCall) => void pendingCalls.set(pendingCall.id, pendingCall),
    remove: (id) => void pendingCalls.delete(id),
    find: (id) => pendingCalls.get(id),
    async canUseTool(_tool, _input, { agentId, reason }) {
      if (ofAgent(agentId)?.asks === true) return { behavior: "ask" };
      return {
        behavior: "deny",
        message: `${reason}, and this MCP client cannot be asked (no elicitation)`,
      };
    },
    approver: {
      async approve(request, { signal }) {
        // What is asked before an agent starts names only the call.
        const pendingCall = pendingCalls.get(request.callId) ?? ofAgent(request.agentPath.at(-1)?.id ?? "");
        if (pendingCall?.mayAsk() === true) return pendingCall.ask(permissionQuestion(request), signal);
        const why =
          pendingCall?.asks === true ? "this call has asked too often" : "the client cannot be asked";
        return { type: "deny", message: `(no one was asked: ${why})` };
      },
    },
    async ask(questions, { signal, agent }) {
      const pendingCall = ofAgent(agent?.id ?? "");
      const answers =
        pendingCall?.mayAsk() === true
          ? await pendingCall.ask(choiceQuestion(agent?.name ?? "", questions), signal)
          : undefined;
      if (answers !== undefined) return answers;
      throw new RetinueError("not-answered", "the person gave no answer, or the MCP client cannot be asked");
    },
    async stopAll() {
      await Promise.all([...pendingCalls.values()].map((pendingCall) => pendingCall.stop()));
    },
  };
}

/** The questions of the AskUserQuestion tool as one form; undefined when the person gave no answers. */
function choiceQuestion(
  agentName: string,
  questions: AskedQuestions,
): FormQuestion<Readonly<Record<string, string>> | undefined> {
  const keys = questions.map((_, index) => `question${index + 1}`);
  const fields = questions.map((question, index) => [keys[index] ?? "", fieldOf(question)] as const);
  return {
    message: stripControlCharacters(
      `The agent ${agentName} asks: ${questions.map(({ question }) => question).join(" / ")}`,
    ),
    schema: { type: "object", properties: Object.fromEntries(fields), required: keys },
    read({ action, content = {} }) {
      if (action !== "accept") return undefined;
      const answers = questions.flatMap(({ question }, index): [string, string][] => {
        const value = content[keys[index] ?? ""];
        return typeof value === "string" ? [[question, value]] : [];
      });
      return Object.fromEntries(answers);
    },
  };
}

function fieldOf({ question, options, multiSelect }: AskedQuestions[number]): FormField {
  const choices = options.map(({ label, description }) => `${label}: ${description}`).join("; ");
  const advice = multiSelect ? "One or more of these, with commas between them. " : "";
  return {
    type: "string",
    title: stripControlCharacters(question),
    description: stripControlCharacters(`${advice}${choices}`),
    ...(multiSelect ? {} : { enum: options.map(({ label }) => label) }),
  };
}

const once = "allow once";
const session = "allow for this session";
const deny = "deny";

/** The most characters of a call's input that a question shows. */
const maxInput = 4000;

/** A call that rules leave open, as a form with three answers. Everything but the input is one line. */
export function permissionQuestion(request: ApprovalRequest): FormQuestion<ApprovalAnswer> {
  const agent = request.agentPath.at(-1);
  const lines = [
    `The agent ${oneLine(describeAskingPath(request.agentPath))} (${oneLine(agent?.id ?? "")}) wants to use ${oneLine(request.tool)}:`,
    showInput(request.input),
    `It is asked because ${oneLine(request.reason)}.`,
    request.suggestedRules.length === 0
      ? "For this session means: this very call, whenever it comes again."
      : `For this session means: everything that ${oneLine(request.suggestedRules.join(", "))} covers.`,
  ];
  return {
    message: lines.join("\n"),
    schema: {
      type: "object",
      properties: { answer: { type: "string", title: "Answer", enum: [once, session, deny] } },
      required: ["answer"],
    },
    read: readAnswer,
  };
}

function readAnswer({ action, content }: FormReply): ApprovalAnswer {
  if (action === "unanswered") return { type: "deny", message: "(no answer came)" };
  const answer = action === "accept" ? content?.["answer"] : deny;
  if (answer === once) return { type: "allow", for: "call" };
  if (answer === session) return { type: "allow", for: "session" };
  return { type: "deny" };
}

/** As JSON, where a line break cannot pretend to be one of our lines; the middle is left out, because ends show most. */
function showInput(input: Readonly<Record<string, unknown>>): string {
  const text = stripControlCharacters(JSON.stringify(input));
  if (text.length <= maxInput) return text;
  const half = maxInput / 2;
  const left = text.length - maxInput;
  return `${text.slice(0, half)} [${left} CHARACTERS ARE NOT SHOWN HERE] ${text.slice(-half)}`.toWellFormed();
}

function oneLine(text: string): string {
  return stripControlCharacters(text).slice(0, 500).replace(/\.$/, "");
}
