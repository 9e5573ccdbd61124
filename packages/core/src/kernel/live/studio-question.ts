import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { quoteParts } from "../../inspection/describe-quote.ts";
import { askingTool } from "../approvals/answer-question.ts";
import type { Approval } from "../approvals/find-approvals.ts";
import { previewEdit } from "../approvals/preview-edit.ts";
import type { StudioQuestion } from "./session-update.ts";

const maxInput = 20_000;

/** A question as the page shows it: a command as text, an edit as what it changes. */
export async function studioQuestion({
  question,
  state,
  answer,
  revoked,
  uses,
}: Approval): Promise<StudioQuestion> {
  const { id, digest, at, tool, reason, everyTime, suggestedRules, places, quote, preview } = question;
  const said = answer === undefined ? undefined : describeAnswer({ answer, revoked, uses });
  const { command } = question.input;
  const edit = state === "waiting" ? await previewEdit(tool, question.input, question.directory) : undefined;
  return {
    ...(typeof command === "string" ? { command: command.slice(0, maxInput).toWellFormed() } : {}),
    edit,
    directory: question.directory,
    answeredAt: answer?.at,
    id,
    digest,
    at,
    state,
    tool,
    reason: quote?.why ?? reason,
    ...(quote === undefined ? {} : { quote: quoteParts(quote) }),
    preview,
    everyTime,
    suggestedRules,
    input: JSON.stringify(question.input, undefined, 2).slice(0, maxInput).toWellFormed(),
    places: places.map(({ agent, path }) => ({ agent, path })),
    ...(tool === askingTool ? { asks: asksOf(question.input) } : {}),
    answer: said,
  };
}

function asksOf(input: Approval["question"]["input"]): NonNullable<StudioQuestion["asks"]> {
  const questions: readonly unknown[] = Array.isArray(input["questions"]) ? input["questions"] : [];
  return questions.filter(isRecord).flatMap(({ question, options }) => {
    const choices = Array.isArray(options) ? options.filter(isRecord) : [];
    const labels = choices.flatMap(({ label }) => (typeof label === "string" ? [label] : []));
    return typeof question === "string" ? [{ text: question, choices: labels }] : [];
  });
}

function describeAnswer({
  answer,
  revoked,
  uses,
}: {
  readonly answer: NonNullable<Approval["answer"]>;
  readonly revoked: Approval["revoked"];
  readonly uses: Approval["uses"];
}): string {
  if (answer.type === "deny")
    return `denied by ${answer.by} (${answer.via})${answer.message === undefined ? "" : `: ${answer.message}`}`;
  const { scope, rules, until, maxUses, maxUsd } = answer;
  return [
    `allowed by ${answer.by} (${answer.via}) for this ${scope}`,
    ...(rules.length === 0 ? [] : [rules.join(" and ")]),
    ...(until === undefined ? [] : [`until ${new Date(until).toISOString()}`]),
    maxUses === undefined ? `used ${uses.length} times` : `used ${uses.length} of ${maxUses} times`,
    ...(maxUsd === undefined ? [] : [`up to $${maxUsd}`]),
    ...(revoked === undefined ? [] : [`revoked by ${revoked.by}`]),
  ].join(", ");
}
