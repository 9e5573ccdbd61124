import { type ApprovalAnswer, type ApprovalRequest, describeAskingPath } from "../../permissions/approver.ts";
import { stripControlCharacters } from "../cli/views/text-width.ts";
import type { FormQuestion, FormReply } from "./form-question.ts";

const once = "allow once";
const session = "allow for this session";
const deny = "deny";

/** The most characters of a call's input that a question shows. */
const maxInput = 4000;

/** A call that rules leave open, as a form with three answers. Everything but the input is one line. */
export function permissionQuestion(request: ApprovalRequest): FormQuestion<ApprovalAnswer> {
  const agent = request.path.at(-1);
  const lines = [
    `The agent ${oneLine(describeAskingPath(request.path))} (${oneLine(agent?.id ?? "")}) wants to use ${oneLine(request.tool)}:`,
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

/** As JSON, where a line break cannot pretend to be one of our lines; the middle is left out, because ends tell most. */
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
