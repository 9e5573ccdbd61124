import { posix } from "node:path";
import { matchesText } from "./grants-unit.ts";
import type { RuleSpecifier } from "./parse-rule.ts";
import { readingsOf } from "./readings-of.ts";

type CommandSpecifier = Extract<RuleSpecifier, { type: "command" }>;

/** Whether a rule that restricts speaks of a command, in whatever way either of them is written. */
export function restrictsUnit(
  specifier: CommandSpecifier,
  texts: readonly string[],
  started: readonly (readonly string[])[] = [],
  root = "",
): boolean {
  const wanted = spellingsOfRule(specifier, root);
  const matches = (rule: CommandSpecifier, text: string): boolean =>
    isOfProgram(rule, text) &&
    withWholeOptions(rule, text).some((whole) => matchesText(rule, whole) || matchesInAnyOrder(rule, whole));
  const covers = (rule: CommandSpecifier, command: string): boolean => {
    const { texts: spellings, isIncomplete } = spellingsOfCommand(command, root);
    return (
      spellings.some((text) => matches(rule, text)) || (isIncomplete && mentions(rule, command.split(/\s+/)))
    );
  };
  return wanted.some(
    (rule) =>
      texts.some((text) => covers(rule, text)) ||
      started.some((words) => startedTexts(rule, words).some((text) => covers(rule, text))),
  );
}

/** Most rules name their program, so that there is nothing to compare with other commands. */
function isOfProgram({ text: rule }: CommandSpecifier, text: string): boolean {
  const end = rule.search(/[\s*]/);
  return text.startsWith(end === -1 ? rule : rule.slice(0, end));
}

/** Whether a rule with an operator in it, such as `curl * | sh`, speaks of a whole line. */
export function restrictsLine(specifier: CommandSpecifier, line: string): boolean {
  if (!/[|;&]/.test(specifier.text)) return false;
  return matchesText({ ...specifier, text: plainLine(specifier.text) }, plainLine(line));
}

function plainLine(line: string): string {
  return line
    .replace(/\s*(&&|\|\||\|&|[;|&\n])\s*/g, " $1 ")
    .replace(/\s+/g, " ")
    .trim();
}

/** The rule as written, and as the shell would read it: without quotes, with one blank between words, and plain paths. */
function spellingsOfRule(specifier: CommandSpecifier, root: string): readonly CommandSpecifier[] {
  const [program = "", ...rest] = unquoted(specifier.text).split(/\s+/);
  const words = rest.map((word) => plainPath(word, root));
  const base = program.slice(program.lastIndexOf("/") + 1) || program;
  const programs = new Set([plainPath(program, root), base].flatMap((name) => [name, foldProgram(name)]));
  const spelled = [...programs].map((name) => ({ ...specifier, text: [name, ...words].join(" ") }));
  return [specifier, ...spelled];
}

/** A star in a rule may be any text, so that only a name without one has another case. */
function foldProgram(name: string): string {
  return name.includes("*") ? name : name.toLowerCase();
}

function unquoted(text: string): string {
  return text.replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'/g, (_, double = "", single = "") => double || single);
}

/** A path in the form in which it is compared: `src/`, `./src` and the absolute one are `src`. */
function plainPath(word: string, root: string): string {
  if (!word.includes("/") || word.includes("://") || word.startsWith("-")) return word;
  const path = posix.normalize(word).replace(/(?<=.)\/$/, "");
  if (root !== "" && path === root) return ".";
  return root !== "" && path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
}

interface Spellings {
  readonly texts: readonly string[];
  /** There are more than were listed. */
  readonly isIncomplete: boolean;
}

const remembered = new Map<string, Spellings>();
const maxRemembered = 4_000;

/** Texts that say the same as a command. */
function spellingsOfCommand(text: string, root: string): Spellings {
  const key = `${root}\0${text}`;
  const known = remembered.get(key);
  if (known !== undefined) return known;
  const words = text.split(/\s+/).map((word) => plainPath(word, root));
  const { readings, isIncomplete } = readingsOf(words);
  const found = new Set([text, words.join(" "), ...readings.map((reading) => reading.join(" "))]);
  for (const spelled of [...found]) {
    const [program = ""] = spelled.split(" ", 1);
    found.add(program.toLowerCase() + spelled.slice(program.length));
  }
  if (remembered.size >= maxRemembered) remembered.clear();
  const spellings = { texts: [...found], isIncomplete };
  remembered.set(key, spellings);
  return spellings;
}

/** Where a command can be read in too many ways, a rule speaks of it if all of its words are there. */
function mentions({ text }: CommandSpecifier, words: readonly string[]): boolean {
  const [program = "", ...wanted] = text.split(/\s+/).map((word) => word.replace(/\*+$/, ""));
  const given = new Set(words.map((word) => word.slice(word.lastIndexOf("/") + 1)));
  const has = (word: string): boolean =>
    given.has(word) ||
    (word.startsWith("--") && words.some((option) => /^--./.test(option) && word.startsWith(option)));
  return program !== "" && given.has(program) && wanted.every((word) => word === "" || has(word));
}

const farthestStarted = 100;

/** What a program may start, from every word on that is the program a rule speaks of. */
function startedTexts({ text }: CommandSpecifier, words: readonly string[]): readonly string[] {
  const [program = ""] = text.split(/[\s*]/, 1);
  if (program === "") return [];
  return words.flatMap((word, at) => {
    const base = word.slice(word.lastIndexOf("/") + 1);
    return base === program || (text.startsWith(`${program}*`) && base.startsWith(program))
      ? [[base, ...words.slice(at + 1, at + farthestStarted)].join(" ")]
      : [];
  });
}

/** A long option may be shortened: one that begins like an option of the rule is taken for it. */
function withWholeOptions({ text: rule }: CommandSpecifier, command: string): readonly string[] {
  const options: readonly string[] = rule.match(/--[A-Za-z][\w-]*/g) ?? [];
  if (options.length === 0 || !command.includes(" --")) return [command];
  const whole = command.replace(/(?<=\s)--[A-Za-z][\w-]*(?=[\s=]|$)/g, (given) =>
    options.includes(given) ? given : (options.find((option) => option.startsWith(given)) ?? given),
  );
  return whole === command ? [command] : [command, whole];
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
