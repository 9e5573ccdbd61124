import { quote } from "@retinue/base/foundation/json-record.ts";
import { formatRule } from "./parse-rule.ts";
import type { PermissionRule } from "./permission-rule.ts";

/** What a person should know of a rule that is valid and yet hardly means what was written. */
export interface RuleWarning {
  readonly message: string;
  readonly advice: string;
}

/** `:*` means "with any arguments" only at the end; elsewhere it is a colon, which no command has there. */
export function warnOfRule(rule: PermissionRule): RuleWarning | undefined {
  const { specifier } = rule;
  if (specifier.type !== "command" || !specifier.text.includes(":*")) return undefined;
  const meant = specifier.text.replaceAll(/\s*:\*/g, " *");
  return {
    message: `${quote(formatRule(rule))} matches no command: \`:*\` represents any arguments only at the end of a rule.`,
    advice: `Write ${quote(`${rule.tool}(${meant})`)}.`,
  };
}
