import { isRecord, shown } from "../../foundation/json-record.ts";
import type { PolicyRule } from "../../permissions/permission-policy.ts";
import { parseRule } from "../../permissions/rules/parse-rule.ts";
import type { TurnRights } from "../skills/skill-turn.ts";

/** Rules that hooks add while they allow a call; they hold for this agent and are never saved. */
export interface HookGrants {
  /** Takes what can be taken, and says of the rest why it was not, each as one sentence. */
  take(updates: readonly unknown[]): readonly string[];
  /** They are next to the rules of the plan, whose deny and ask rules go before what they allow. */
  rights(): TurnRights;
}

const maxRules = 200;

export function createHookGrants(anchor: string): HookGrants {
  const lists = { allow: [] as PolicyRule[], deny: [] as PolicyRule[] };

  function takeRule(written: unknown, list: "allow" | "deny"): readonly string[] {
    const text = ruleText(written);
    const reading = text === undefined ? undefined : parseRule(text, { list });
    if (reading?.type !== "rule") return [`it names ${shown(text ?? written)}, which is no rule`];
    if (lists.allow.length + lists.deny.length >= maxRules) return [`there are ${maxRules} rules already`];
    lists[list].push({ rule: reading.rule, anchor, from: "a hook" });
    return [];
  }

  function takeUpdate(update: unknown): readonly string[] {
    if (!isRecord(update) || update["type"] !== "addRules")
      return ["only rules can be added; modes and folders stay as they are"];
    const { destination, behavior, rules } = update;
    if (destination !== "session")
      return [`it wants to save to ${shown(destination)}, and only a person saves rules; write "session"`];
    if (behavior !== "allow" && behavior !== "deny")
      return [`"behavior" must be allow or deny, but it is ${shown(behavior)}`];
    return (Array.isArray(rules) ? rules : [undefined]).flatMap((rule) => takeRule(rule, behavior));
  }

  return {
    take: (updates) =>
      updates
        .flatMap(takeUpdate)
        .map((why) => `An entry of a hook's "updatedPermissions" was not used: ${why}.`),
    rights: () => lists,
  };
}

function ruleText(written: unknown): string | undefined {
  if (!isRecord(written) || typeof written["toolName"] !== "string") return undefined;
  const { toolName, ruleContent } = written;
  if (ruleContent === undefined || ruleContent === null) return toolName;
  return typeof ruleContent === "string" ? `${toolName}(${ruleContent})` : undefined;
}
