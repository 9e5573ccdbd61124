import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { shown } from "../../foundation/json-record.ts";
import { findBadRule, type RuleList } from "../../runtime/options/find-bad-rule.ts";
import { misuse, type SessionOptions } from "./session-options.ts";

/** An option that could not take effect must not be passed over. */
export function checkSessionOptions(
  { disallowedTools = [], addDir = [], pluginDir = [] }: SessionOptions,
  cwd: string,
): void {
  checkRules("--disallowedTools", "deny", disallowedTools);
  const folders = [
    ...addDir.map((folder) => ["--add-dir", folder] as const),
    ...pluginDir.map((folder) => ["--plugin-dir", folder] as const),
  ];
  for (const [option, folder] of folders) {
    if (existsSync(resolve(cwd, folder))) continue;
    throw misuse(`${option} names a folder that is not there: ${shown(folder, 300)}.`, "Check the path.");
  }
}

export function checkRules(option: string, list: RuleList, rules: readonly string[]): void {
  const bad = findBadRule(list, rules);
  if (bad !== undefined)
    throw misuse(`${option} holds a rule that cannot be understood: ${bad.reason}.`, bad.advice);
}
