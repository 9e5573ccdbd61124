import { firstLine } from "../../shared/format.ts";
import { cutRow, type Row, rowWidth, span } from "../screen/row.ts";
import { bold, colours, dim } from "../screen/style.ts";
import type { GrantScope, Question, QuestionAnswer } from "../session/terminal-session.ts";
import type { RowContext } from "../text/row-context.ts";

/** What was asked and what the person answered, for the scrollback. */
export function answeredRow(
  question: Question,
  answer: QuestionAnswer,
  { width, fileName }: Pick<RowContext, "width" | "fileName">,
): Row {
  // A choice of the terminal itself is neither a yes nor a no.
  if (question.kind === "form" && question.isChoice === true)
    return cutRow(
      [span(`· ${subjectText(question, fileName)}: `, dim), span(answerText(question, answer))],
      width,
    );
  const isYes = answer.type !== "deny";
  return decidedRow(
    question,
    { isYes, how: `you: ${firstLine(answerText(question, answer))}` },
    { width, fileName },
  );
}

/** What was still asked when its agent was moved to the background. */
export function unaskedRow(question: Question, context: Pick<RowContext, "width" | "fileName">): Row {
  return decidedRow(question, { isYes: false, how: "no: agents in the background cannot ask" }, context);
}

function decidedRow(
  question: Question,
  { isYes, how }: { readonly isYes: boolean; readonly how: string },
  { width, fileName }: Pick<RowContext, "width" | "fileName">,
): Row {
  const end: Row = [span(`  ${how}`)];
  const title: Row = [
    isYes ? span("✓ ", colours.good) : span("✗ ", colours.warning),
    // Of the main agent there is only one.
    ...(question.path.length > 1 ? [span(`${question.path.join(" › ")} `, bold)] : []),
    span(subjectText(question, fileName), dim),
  ];
  // The answer is what the line is for; what was asked is cut first.
  const room = Math.max(Math.floor(width / 2), width - rowWidth(end));
  return cutRow([...cutRow(title, room), ...end], width);
}

function subjectText(question: Question, fileName: RowContext["fileName"]): string {
  switch (question.kind) {
    case "permission": {
      const subject = firstLine(question.subject);
      const isFile = question.diff?.path === subject;
      return `${question.call.tool} ${isFile ? fileName(subject) : subject}`;
    }
    case "background":
      return `${question.agent} in the background: ${question.description}`;
    case "form":
      return question.fields.map(({ header }) => header).join(", ");
    case "plan":
      return "the plan";
  }
}

const scopeTexts: Readonly<Record<GrantScope, string>> = {
  session: "in this session",
  agent: "for this agent",
  tree: "for this agent and those below it",
  project: "in this project",
};

function answerText(question: Question, answer: QuestionAnswer): string {
  switch (answer.type) {
    case "allow":
      return "yes";
    case "allow-always": {
      const rules = answer.rules.length === 0 ? "exactly this" : answer.rules.join(", ");
      return `yes, always ${rules} ${scopeTexts[answer.scope]}`;
    }
    case "deny":
      // A choice of the terminal itself that is closed decides nothing.
      if (question.kind === "form" && question.isChoice === true) return "not now";
      return answer.message === undefined ? "no" : `no, ${answer.message}`;
    case "grant":
      return answer.tools.length === 0
        ? "start it with nothing of this"
        : `may use ${answer.tools.join(", ")}`;
    case "fields":
      return `${chosenText(question, answer.answers)}`;
    case "approve-plan":
      return answer.mode === "acceptEdits" ? "carry it out, accept edits" : "carry it out";
  }
}

function chosenText(question: Question, answers: Readonly<Record<string, string>>): string {
  if (question.kind !== "form") return "";
  return question.fields.flatMap((field) => answers[field.question] ?? []).join(" · ");
}
