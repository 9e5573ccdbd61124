import { quoteRows } from "@retinue/core/inspection/describe-quote.ts";
import type { CanUseTool } from "@retinue/core/kernel/agent/create-authorize.ts";
import type {
  Answer,
  FormQuestion as ChoiceQuestion,
  PermissionQuestion,
  Question,
} from "@retinue/core/protocol/question.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import type { FormField, FormQuestion, FormReply } from "./form-question.ts";
import type { PendingCall } from "./pending-call.ts";

/** All calls that are under way, and how what their agents ask finds the client that waits for them. */
export interface PendingCalls {
  add(pendingCall: PendingCall): void;
  remove(id: string): void;
  find(id: string): PendingCall | undefined;
  /** Refuses immediately where the client cannot be asked, so that the reason is not taken for a person's. */
  readonly canUseTool: CanUseTool;
  /** Puts a question to the client whose call it comes from; the signal takes it back. */
  answer(question: Question, signal: AbortSignal): Promise<Answer>;
  stopAll(): Promise<void>;
}

export function createPendingCalls(): PendingCalls {
  const pendingCalls = new Map<string, PendingCall>();
  const ofAgent = (agentId: string): PendingCall | undefined =>
    [...pendingCalls.values()].find(({ id, agents }) => agents.get(agentId)?.state()?.callId === id);

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
    async answer(question, signal) {
      const asking = ofAgent(question.path.at(-1)?.id ?? "");
      if (question.kind === "permission") {
        // What is asked before an agent starts names only the call.
        const pendingCall = pendingCalls.get(question.callId) ?? asking;
        if (pendingCall?.mayAsk() === true) return pendingCall.ask(permissionForm(question), signal);
        const why =
          pendingCall?.asks === true ? "this call has asked too often" : "the client cannot be asked";
        return { type: "deny", message: `(no one was asked: ${why})` };
      }
      if (question.kind === "form" && asking?.mayAsk() === true)
        return asking.ask(choiceForm(question), signal);
      return unanswered;
    },
    async stopAll() {
      await Promise.all([...pendingCalls.values()].map((pendingCall) => pendingCall.stop()));
    },
  };
}

const unanswered: Answer = {
  type: "deny",
  message: "the person gave no answer, or the MCP client cannot be asked",
};

/** The questions of the AskUserQuestion tool as one form. */
function choiceForm({ path, fields: questions }: ChoiceQuestion): FormQuestion<Answer> {
  const agentName = path.at(-1)?.name ?? "";
  const keys = questions.map((_, index) => `question${index + 1}`);
  const fields = questions.map((question, index) => [keys[index] ?? "", fieldOf(question)] as const);
  return {
    message: stripControlCharacters(
      `The agent ${agentName} asks: ${questions.map(({ question }) => question).join(" / ")}`,
    ),
    schema: { type: "object", properties: Object.fromEntries(fields), required: keys },
    read({ action, content = {} }) {
      if (action !== "accept") return unanswered;
      const answers = questions.flatMap(({ question }, index): [string, string][] => {
        const value = content[keys[index] ?? ""];
        return typeof value === "string" ? [[question, value]] : [];
      });
      return { type: "fields", answers: Object.fromEntries(answers) };
    },
  };
}

function fieldOf({ question, options, multiSelect }: ChoiceQuestion["fields"][number]): FormField {
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
export function permissionForm(request: PermissionQuestion): FormQuestion<Answer> {
  const agent = request.path.at(-1);
  const path = request.path.map(({ name }) => name).join(" → ");
  const { quote } = request;
  const who = `The agent ${oneLine(path)} (${oneLine(agent?.id ?? "")})`;
  if (quote !== undefined)
    return answerForm(
      [
        `${who} wants to start ${quote.agents.length === 1 ? "an agent" : `${quote.agents.length} agents`}:`,
        ...quoteRows(quote).map(stripControlCharacters),
        `It is asked because ${oneLine(quote.why ?? request.reason)}.`,
      ],
      [once, deny],
    );
  const lines = [
    `${who} wants to use ${oneLine(request.tool)}:`,
    ...(request.preview === undefined ? [] : [...request.preview.rows, ""].map(stripControlCharacters)),
    showInput(request.input),
    `It is asked because ${oneLine(request.reason)}.`,
    request.rules.length === 0
      ? "For this session means: this very call, whenever it comes again."
      : `For this session means: everything that ${oneLine(request.rules.join(", "))} covers.`,
  ];
  return answerForm(lines, [once, session, deny]);
}

function answerForm(lines: readonly string[], answers: readonly string[]): FormQuestion<Answer> {
  return {
    message: lines.join("\n"),
    schema: {
      type: "object",
      properties: { answer: { type: "string", title: "Answer", enum: answers } },
      required: ["answer"],
    },
    read: readAnswer,
  };
}

function readAnswer({ action, content }: FormReply): Answer {
  if (action === "unanswered") return { type: "deny", message: "(no answer came)" };
  const answer = action === "accept" ? content?.["answer"] : deny;
  if (answer === once) return { type: "allow" };
  if (answer === session) return { type: "allow", scope: "session" };
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
