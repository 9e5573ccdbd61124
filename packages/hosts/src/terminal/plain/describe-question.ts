import { plural } from "../../shared/format.ts";
import { rowText } from "../screen/row.ts";
import type { Question, QuestionAnswer } from "../session/terminal-session.ts";
import { diffRows } from "../text/diff-rows.ts";
import { plainContext } from "../text/row-context.ts";

const width = 100;

/** A question as lines, with what to write to answer it. */
export function describeQuestion(question: Question): string {
  const who = question.path.join(" > ");
  switch (question.kind) {
    case "permission": {
      const { call, subject, diff, reason, rules, starts } = question;
      if (starts !== undefined)
        return `Question: ${who} wants to start ${plural(starts, "agent")}:\n${subject}\n${reason}\nWrite /yes, or /no with what to do instead.`;
      const what =
        diff === undefined
          ? subject
          : [diff.path, ...diffRows(diff, plainContext(width), { maxRows: 100 }).map(rowText)].join("\n");
      const always = rules.length === 0 ? "" : `, /always to store ${rules.join(", ")} for this session`;
      return `Question: ${who} asks to use ${call.tool}:\n${what}\n${reason}\nWrite /yes${always}, or /no with what to do instead.`;
    }
    case "background":
      return `Question: ${who} starts ${question.agent} in the background: ${question.description}\nIt could use ${question.tools.join(", ")}. Write /yes to grant that, or /no to start it with nothing of it.`;
    case "plan":
      return `Question: ${who} has a plan:\n${question.plan}\nWrite /yes to carry it out, or /no with what is missing.`;
    case "form":
      return question.fields
        .map(({ question: asked, details = [], options }) => {
          const text = [asked, ...details].join("\n");
          const choices = options.map(({ label, description }, at) => `  ${at + 1} ${label}: ${description}`);
          return `Question: ${who} asks: ${text}\n${choices.join("\n")}\nWrite /answer with a number or your own words.`;
        })
        .join("\n");
  }
}

/** The answer that a command gives to a question; undefined where it is none. */
export function readAnswer(
  question: Question,
  command: "yes" | "always" | "no" | "answer",
  words: string,
): QuestionAnswer | undefined {
  if (command === "no") return words === "" ? { type: "deny" } : { type: "deny", message: words };
  switch (question.kind) {
    case "permission":
      if (command === "yes") return { type: "allow" };
      return command === "always" && question.rules.length > 0
        ? { type: "allow-always", scope: "session", rules: question.rules }
        : undefined;
    case "background":
      return command === "yes" ? { type: "grant", tools: question.tools } : undefined;
    case "plan":
      return command === "yes" ? { type: "approve-plan", plan: question.plan, mode: "default" } : undefined;
    case "form":
      return command === "answer" && words !== "" ? readForm(question, words) : undefined;
  }
}

/** Several questions are answered in one line, with semicolons between the answers. */
function readForm(
  { fields }: Extract<Question, { kind: "form" }>,
  words: string,
): QuestionAnswer | undefined {
  const parts = fields.length === 1 ? [words] : words.split(";").map((part) => part.trim());
  if (parts.length !== fields.length) return undefined;
  const answers = fields.map(({ question, options }, at) => {
    const part = parts[at] ?? "";
    return [question, options[Number(part) - 1]?.label ?? part] as const;
  });
  return { type: "fields", answers: Object.fromEntries(answers) };
}
