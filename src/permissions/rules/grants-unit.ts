import { matchesPattern } from "../../foundation/match-pattern.ts";
import type { ShellAnalysis, ShellUnit } from "../shell/shell-analysis.ts";
import type { RuleSpecifier } from "./parse-rule.ts";

type CommandSpecifier = Extract<RuleSpecifier, { type: "command" }>;

/** Whether a rule for one command text says exactly this whole call. */
export function saysWholeCall({ text }: CommandSpecifier, analysis: ShellAnalysis): boolean {
  return text === analysis.exactText;
}

/** Whether a rule that grants covers a command: a wildcard never covers what only an exact rule may allow. */
export function grantsUnit(specifier: CommandSpecifier, unit: ShellUnit): boolean {
  const { grantText, written, exactOnly } = unit;
  if (grantText === undefined) return false;
  if (specifier.text === grantText || specifier.text === written) return true;
  if (specifier.match === "exact") return false;
  if (exactOnly !== undefined && !reachesFarEnough(specifier, unit)) return false;
  return matchesText(specifier, grantText) && pinsUrl(specifier, unit);
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
 * Whether the words before the first star of a rule say enough. A rule for a whole interpreter (`python3 *`) grants any
 * code; one that continues must pin the script, or options that leave the code as it is.
 */
function reachesFarEnough(
  { match, text }: CommandSpecifier,
  { wildcardHead, pinnedHead }: ShellUnit,
): boolean {
  if (wildcardHead === undefined) return false;
  const before = `${(match === "prefix" ? text : (text.split("*")[0] ?? "")).trimEnd()} `;
  if (!before.startsWith(`${wildcardHead} `)) return false;
  if (!isInterpreted(wildcardHead) || before === `${wildcardHead} `) return true;
  return (
    pinnedHead !== undefined && (`${pinnedHead} `.startsWith(before) || before.startsWith(`${pinnedHead} `))
  );
}

/** A head of one word is an interpreter; longer ones name what is run. */
function isInterpreted(head: string): boolean {
  return !head.includes(" ");
}

/** Whether a rule that restricts speaks of a command, under any of its names and with its options in any order. */
export function restrictsUnit(
  specifier: CommandSpecifier,
  texts: readonly string[],
  started: readonly (readonly string[])[] = [],
): boolean {
  const matches = (text: string): boolean =>
    matchesText(specifier, text) || matchesInAnyOrder(specifier, text);
  return texts.some(matches) || started.some((words) => startedTexts(specifier, words).some(matches));
}

/** What a program may start, from every word on that is the program a rule speaks of. */
function startedTexts({ text }: CommandSpecifier, words: readonly string[]): readonly string[] {
  const [program = ""] = text.split(/[\s*]/, 1);
  if (program === "") return [];
  return words.flatMap((word, at) => {
    const base = word.slice(word.lastIndexOf("/") + 1);
    return base === program || (text.startsWith(`${program}*`) && base.startsWith(program))
      ? [[base, ...words.slice(at + 1)].join(" ")]
      : [];
  });
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

/** `rm -rf *` also speaks of `rm -f -r x` and `rm x -rf`. */
function matchesInAnyOrder({ match, text }: CommandSpecifier, command: string): boolean {
  if (match === "wildcard" || !/ -/.test(text)) return false;
  const wanted = sortWords(text);
  const given = sortWords(command);
  if (![...wanted.options].every((option) => given.options.has(option))) return false;
  if (match === "exact" && wanted.options.size !== given.options.size) return false;
  const hasWords = wanted.words.every((word, at) => given.words[at] === word);
  return hasWords && (match === "prefix" || wanted.words.length === given.words.length);
}

function sortWords(text: string): {
  readonly words: readonly string[];
  readonly options: ReadonlySet<string>;
} {
  const words: string[] = [];
  const options = new Set<string>();
  for (const word of text.split(/\s+/)) {
    if (!word.startsWith("-") || word === "-") words.push(word);
    else for (const option of splitOption(word)) options.add(sameOptions.get(option) ?? option);
  }
  return { words, options };
}

/** Short options are alone or together; a longer word after one hyphen is an option of its own. */
function splitOption(word: string): readonly string[] {
  return /^-[A-Za-z]{2,4}$/.test(word) ? [...word.slice(1)].map((letter) => `-${letter}`) : [word];
}

const sameOptions: ReadonlyMap<string, string> = new Map([
  ["-R", "-r"],
  ["--recursive", "-r"],
  ["--force", "-f"],
]);
