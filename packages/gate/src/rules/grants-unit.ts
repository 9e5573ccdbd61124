import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";
import type { RuleSpecifier } from "../permission-rule.ts";
import type { ShellAnalysis, ShellUnit } from "../shell/model.ts";

export type CommandSpecifier = Extract<RuleSpecifier, { type: "command" }>;

/** Whether a rule for one command text says exactly this whole call. */
export function matchesWholeCall({ text }: CommandSpecifier, analysis: ShellAnalysis): boolean {
  return text === analysis.exactText;
}

/** Whether a rule that grants covers a command: a wildcard never covers what only an exact rule may allow. */
export function grantsUnit(specifier: CommandSpecifier, unit: ShellUnit): boolean {
  const { grantText, written, exactOnly } = unit;
  if (grantText === undefined) return false;
  if (specifier.text === grantText || specifier.text === written) return true;
  if (specifier.match === "exact") return false;
  if (!namesProgram(specifier, unit)) return false;
  if (exactOnly !== undefined && !reachesFarEnough(specifier, unit)) return false;
  return matchesText(specifier, grantText) && pinsUrl(specifier, unit);
}

/**
 * Whether the words before the first star name the program itself, or the folder that it is in. A star that other words
 * follow covers no options of a program that is not known: one of them could start another.
 */
function namesProgram({ match, text }: CommandSpecifier, { words, namesFiles }: ShellUnit): boolean {
  if (match !== "wildcard") return true;
  const [before = "", ...after] = text.split("*");
  const [program = ""] = before.split(" ");
  const own = words[0]?.text ?? "";
  const isFolder =
    program.includes("/") && own.startsWith(program) && !own.slice(program.length).includes("/");
  // `ls*` names every program that begins so.
  const isBeginning = !program.includes("/") && text === `${program}*` && own.startsWith(program);
  if (program === "" || (own !== program && !isFolder && !isBeginning)) return false;
  const isOpenEnded = after.every((part) => part === "");
  const named = text.split(/[\s*]+/);
  return (
    isOpenEnded ||
    namesFiles === undefined ||
    words.every((word, at) => at === 0 || !word.text.startsWith("-") || named.includes(word.text))
  );
}

/** A rule with an address covers a request to that host, and nothing that could lead it elsewhere. */
function pinsUrl({ text }: CommandSpecifier, { urls, words }: ShellUnit): boolean {
  const pinned = /\b[a-z][a-z0-9+.-]*:\/\/[^\s*]*/i.exec(text)?.[0];
  if (pinned === undefined) return true;
  const given = urls?.urls ?? words.map((word) => word.text).filter((word) => word.includes("://"));
  const [only] = given;
  if (given.length !== 1 || only === undefined || urls?.steering !== undefined) return false;
  return hostOf(only) !== undefined && hostOf(only) === hostOf(pinned);
}

/** Scheme, host and port of an address without anything that programs read differently. */
function hostOf(url: string): string | undefined {
  const found = /^([a-z][a-z0-9+.-]*:\/\/[a-z0-9.-]+(?::\d+)?)(?:\/[\w./?&=%+,;~:@!-]*)?$/i.exec(url);
  return found?.[1]?.toLowerCase();
}

/**
 * Whether the words before the first star of a rule are specific enough. A rule for a whole interpreter (`python3 *`) grants any
 * code; one that continues must pin the script, or options that leave the code as it is.
 */
function reachesFarEnough(
  { match, text }: CommandSpecifier,
  { wildcardHead, pinnedHead, requiredHead }: ShellUnit,
): boolean {
  if (wildcardHead === undefined) return false;
  const before = `${(match === "prefix" ? text : (text.split("*")[0] ?? "")).trimEnd()} `;
  if (!before.startsWith(`${wildcardHead} `)) return false;
  // A head of one word is an interpreter; longer ones name what is run.
  if (wildcardHead.includes(" ") || before === `${wildcardHead} `) return true;
  if (requiredHead !== undefined) return before.startsWith(`${requiredHead} `);
  return (
    pinnedHead !== undefined && (`${pinnedHead} `.startsWith(before) || before.startsWith(`${pinnedHead} `))
  );
}

export function matchesText({ match, text }: CommandSpecifier, command: string): boolean {
  switch (match) {
    case "exact":
      return command === text;
    case "prefix":
      return command === text || command.startsWith(`${text} `);
    case "wildcard":
      // A last ` *` also means nothing at all.
      return matchesPattern(text, command) || (text.endsWith(" *") && matchesPattern(text, `${command} `));
  }
}
