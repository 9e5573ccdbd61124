import { harmless } from "../../src/apps/cli/views/text-width.ts";
import { firstText, type SecurityCase, type Verdict } from "./security-case.ts";

/** Denied is what does not reach the terminal as it was; line breaks are the view's own. */
export function judgeRender({ context = {} }: SecurityCase): Verdict {
  const text = firstText(context, ["text", "output", "content", "value", "title", "description", "name"]);
  if (text === undefined) return { skipped: "the case holds no text to show" };
  const isShown = text.split("\n").every((line) => harmless(line) === line.replaceAll("\t", " "));
  return isShown ? "allow" : "deny";
}
