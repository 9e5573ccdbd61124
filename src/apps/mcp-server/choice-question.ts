import type { HostQuestion } from "../../tools/tool-host.ts";
import { stripControlCharacters } from "../cli/views/text-width.ts";
import type { FormField, FormQuestion } from "./form-question.ts";

/** The questions of the AskUserQuestion tool as one form; undefined when the person gave no answers. */
export function choiceQuestion(
  agentName: string,
  questions: readonly HostQuestion[],
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

function fieldOf({ question, options, multiSelect }: HostQuestion): FormField {
  const choices = options.map(({ label, description }) => `${label}: ${description}`).join("; ");
  const advice = multiSelect ? "One or more of these, with commas between them. " : "";
  return {
    type: "string",
    title: stripControlCharacters(question),
    description: stripControlCharacters(`${advice}${choices}`),
    ...(multiSelect ? {} : { enum: options.map(({ label }) => label) }),
  };
}
