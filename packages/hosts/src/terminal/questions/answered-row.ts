import { firstLine } from "../../shared/format.ts";
import { cutRow, type Row, span } from "../screen/row.ts";
import { bold, colours, dim } from "../screen/style.ts";
import type { GrantScope, Question, QuestionAnswer } from "../session/terminal-session.ts";

/** What was asked and what the person answered, for the scrollback. */
export function answeredRow(question: Question, answer: QuestionAnswer, width: number): Row {
  const isYes = answer.type !== "deny";
  const end = `  ${firstLine(answerText(question, answer))}`;
  const title: Row = [
    isYes ? span("✓ ", colours.good) : span("✗ ", colours.warning),
    span(question.path.join(" › "), bold),
    span(` ${subjectText(question)}`, dim),
  ];
  // The answer is what the line is for; what was asked is cut first.
  const room = Math.max(Math.floor(width / 2), width - end.length);
  return cutRow([...cutRow(title, room), span(end)], width);
}

function subjectText(question: Question): string {
  switch (question.kind) {
    case "permission":
      return `${question.call.tool} ${firstLine(question.subject)}`;
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
      return "you: yes";
    case "allow-always": {
      const rules = answer.rules.length === 0 ? "exactly this" : answer.rules.join(", ");
      return `you: yes, always ${rules} ${scopeTexts[answer.scope]}`;
    }
    case "deny":
      // A choice of the terminal itself that is closed decides nothing.
      if (question.kind === "form" && question.isChoice === true) return "you: not now";
      return answer.message === undefined ? "you: no" : `you: no, ${answer.message}`;
    case "grant":
      return answer.tools.length === 0
        ? "you: start it with nothing of this"
        : `you: may use ${answer.tools.join(", ")}`;
    case "fields":
      return `you: ${chosenText(question, answer.answers)}`;
    case "approve-plan":
      return answer.mode === "acceptEdits" ? "you: carry it out, accept edits" : "you: carry it out";
  }
}

function chosenText(question: Question, answers: Readonly<Record<string, string>>): string {
  if (question.kind !== "form") return "";
  return question.fields.flatMap((field) => answers[field.question] ?? []).join(" · ");
}
