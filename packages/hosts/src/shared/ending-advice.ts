import type { RunEnding } from "@retinue/core/conversation/run-event.ts";

/** What a person can do about how a run ended; undefined where nothing is known. */
export function endingAdvice({ reason, advice }: Pick<RunEnding, "reason" | "advice">): string | undefined {
  return advice ?? byReason.get(reason);
}

const byReason: ReadonlyMap<string, string> = new Map([
  ["max_budget", "Allow more with --max-budget-usd, or with limits in the settings."],
  ["max_turns", "Allow more with --max-turns, or send another message to continue."],
  ["max_time", "Allow more with --max-time."],
]);

/** A refusal is written for the model; people are shown why, and the narrow rule that allows it. */
export function refusalForPeople(text: string): string {
  return text
    .replace(/ Do without it, or say in your answer what you would have needed\.$/, "")
    .replace(/^\S+ was not allowed: /, "")
    .replace(/^the person refused it and says: /, "you refused it: ")
    .replace(/^the person refused it/, "you refused it")
    .replace(
      / A person can allow exactly this with the rules? (.+) \(permissions\.allow in the settings, or --allowedTools\)\.$/s,
      (_, rules: string) => ` Allow exactly this: --allowedTools ${quoteRules(rules)}`,
    );
}

/** "`A(x)` and `B(y)`" as one argument of a shell. */
function quoteRules(written: string): string {
  const rules = [...written.matchAll(/`([^`]*)`/g)].map(([, rule = ""]) => rule);
  return `'${rules.join(",").replaceAll("'", "'\\''")}'`;
}
