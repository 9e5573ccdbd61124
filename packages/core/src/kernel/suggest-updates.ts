import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import type { RuleUpdate } from "../protocol/op.ts";
import type { PermissionQuestion } from "../protocol/question.ts";

/** Commands that change files as Edit and Write do; the mode that accepts edits allows them in the working folders. */
const fileCommands: ReadonlySet<string> = new Set(["mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed"]);

/** Changes of rights that would answer a question for good: edits are allowed together, paths elsewhere for the session. */
export function suggestUpdates(
  { tool, input, rules, outsidePaths = [] }: PermissionQuestion,
  directory: string,
): readonly RuleUpdate[] {
  const isOutside = outsidePaths.length > 0;
  const isEdit = ["Edit", "Write", "NotebookEdit"].includes(tool);
  const acceptEdits = { type: "setMode", mode: "acceptEdits", destination: "session" };
  if (isEdit && !isOutside) return [acceptEdits];
  const destination = isEdit || tool === "Read" || isOutside ? "session" : "localSettings";
  const written = rules.flatMap((text) => {
    if (parseRule(text, { list: "allow" }).type !== "rule") return [];
    const match = /^([^(]+)(?:\((.*)\))?$/s.exec(text);
    const content = match?.[2];
    return [{ toolName: match?.[1] ?? text, ruleContent: content }];
  });
  const command = tool === "Bash" && isRecord(input) ? input["command"] : undefined;
  const [first = ""] = typeof command === "string" ? command.trim().split(/\s/) : [];
  return [
    ...(written.length === 0 ? [] : [{ type: "addRules", rules: written, behavior: "allow", destination }]),
    ...(isEdit ? [acceptEdits] : []),
    ...(isOutside || !fileCommands.has(first)
      ? []
      : [{ type: "addDirectories", directories: [directory], destination: "session" }, acceptEdits]),
  ];
}
