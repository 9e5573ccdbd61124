import { isAdvisedAgentName, refuseAgentName } from "../../../definitions/agent-name.ts";
import { lintModel } from "../../../definitions/lint-texts.ts";
import { lintTools } from "../../../definitions/lint-tools.ts";
import { rateDescription } from "../../../definitions/rate-description.ts";
import { shippedAliases } from "../../../model/model-aliases.ts";
import { splitEntries } from "../../../tools/list-field.ts";

export interface Complaint {
  readonly message: string;
  readonly advice?: string;
}

const nameAdvice = "Use lower-case letters, digits and hyphens, such as sql-reviewer.";

export function complaintAboutName(name: string): Complaint | undefined {
  const refusal = refuseAgentName(name);
  const shown = JSON.stringify(name.slice(0, 80));
  if (refusal !== undefined) {
    return { message: `The name ${shown} cannot be used: ${refusal.reason}.`, advice: nameAdvice };
  }
  if (isAdvisedAgentName(name)) return undefined;
  return { message: `The name ${shown} is hard to type and to match.`, advice: nameAdvice };
}

export function complaintAboutTools(text: string): Complaint | undefined {
  if (text.trim() === "") return undefined;
  return complaint(lintTools({ ...blank, tools: splitEntries(text) }));
}

export function complaintAboutModel(text: string): Complaint | undefined {
  if (text.trim() === "") return undefined;
  return complaint(lintModel({ ...blank, model: text }, { trusted: false, aliases: shippedAliases }));
}

/** What would make a description better; nothing when it is good. */
export function adviceOnDescription(text: string): readonly string[] {
  return rateDescription(text).advice;
}

const blank = {
  name: "new",
  description: "",
  prompt: "",
  source: { scope: "project" },
  written: {},
} as const;

function complaint(
  issues: readonly { readonly severity: string; readonly message: string; readonly advice?: string }[],
): Complaint | undefined {
  return issues.find(({ severity }) => severity !== "note");
}
