import * as z from "zod";
import type { Tool } from "../tool.ts";
import { builtinTool, failed } from "./builtin-tool.ts";
import { optionalFlag } from "./optional-text.ts";

const maxHeader = 12;

const question = z.object({
  question: z.string().trim().min(1).describe("The whole question, ending in a question mark."),
  header: z.string().trim().min(1).describe(`A label of at most ${maxHeader} characters, such as Database.`),
  options: z
    .array(
      z.object({
        label: z.string().trim().min(1).describe("The choice in one to five words."),
        description: z.string().describe("What choosing it means."),
      }),
    )
    .min(2)
    .max(4)
    .describe("Choices that exclude each other unless multiSelect; the person can always answer otherwise."),
  multiSelect: optionalFlag("Whether several choices may be taken together."),
});

const input = z.object({
  questions: z
    .array(question)
    .min(1)
    .max(4)
    .refine((asked) => new Set(asked.map((one) => one.question)).size === asked.length, {
      message: "Two questions have the same text; ask each once.",
    })
    .refine(
      (asked) =>
        asked.every(({ options }) => new Set(options.map(({ label }) => label)).size === options.length),
      {
        message: "Two options of a question have the same label; give each its own.",
      },
    ),
});

/** Puts questions with choices to the person, where there is one. */
export function createAskUserQuestionTool(): Tool {
  return builtinTool<z.infer<typeof input>>({
    name: "AskUserQuestion",
    description:
      "Asks the person to choose when the work hangs on something only they can decide: unclear wishes, a choice between ways. Put the choice you advise first and mark it (Recommended). Do not ask what you can find out yourself.",
    input,
    async call({ questions }, { host, signal, agent, callId }) {
      if (host.ask === undefined) {
        return failed(
          "No one can be asked in this run. Decide for yourself, and say in your answer what you assumed.",
        );
      }
      const asked = questions.map((one) => ({
        ...one,
        header: one.header.slice(0, maxHeader),
        multiSelect: one.multiSelect ?? false,
      }));
      try {
        const answers = await host.ask(asked, { signal, agent, callId });
        const lines = asked.map(({ question: text }) => `${text}\n→ ${answerTo(answers, text)}`);
        return { content: `The person answered:\n${lines.join("\n")}`, data: { questions: asked, answers } };
      } catch (error) {
        const why = signal.aborted
          ? "the run was interrupted"
          : String(error instanceof Error ? error.message : error);
        return failed(`The questions were not answered: ${why}.`);
      }
    },
  });
}

function answerTo(answers: Readonly<Record<string, string>>, text: string): string {
  return Object.hasOwn(answers, text) ? (answers[text] ?? "") : "(no answer)";
}
