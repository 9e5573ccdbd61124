import { harmlessLines } from "@retinue/hosts/shared/strip-control-characters.ts";
import { terminalText } from "@retinue/hosts/shared/terminal-text.ts";
import { firstText, NotHonoured, type SecurityCase, textFields, type Verdict } from "./security-case.ts";

/** Fields that hold what a person is shown besides text of others. */
export const shownFields: readonly string[] = [
  "title",
  "description",
  "name",
  "command",
  "fileName",
  "filename",
  "agentName",
  "toolName",
  "prompt",
  "label",
];

/** Denied is what does not reach a terminal as it was: neither from a view nor through the last filter before it. */
export function judgeRender({ context = {} }: SecurityCase): Verdict {
  const text = firstText(context, [...textFields, ...shownFields]);
  if (text === undefined) throw new NotHonoured("the case holds no text to show");
  return harmlessLines(text) === text && terminalText(text, { colours: true }) === text ? "allow" : "deny";
}
