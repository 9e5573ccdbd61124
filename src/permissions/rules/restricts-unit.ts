import { type CommandSpecifier, matchesText } from "./grants-unit.ts";

/**
 * Whether a rule that restricts speaks of a command, under any of its names, with its options in any order or shortened,
 * and with options before the words that the rule names.
 */
export function restrictsUnit(
  specifier: CommandSpecifier,
  texts: readonly string[],
  started: readonly (readonly string[])[] = [],
): boolean {
  return spellingsOf(specifier).some((spelling) => {
    const speaks = (text: string): boolean =>
      formsOf(text, spelling).some(
        (form) =>
          matchesText(spelling, form) ||
          matchesInAnyOrder(spelling, form) ||
          matchesBehindOptions(spelling, form),
      );
    return texts.some(speaks) || started.some((words) => startedTexts(spelling, words).some(speaks));
  });
}

/** Whether a rule with an operator in it, such as `curl * | sh`, speaks of a whole line. */
export function restrictsLine(specifier: CommandSpecifier, line: string): boolean {
  if (!/[|;&]/.test(specifier.text)) return false;
  const text = evenly(specifier.text);
  return matchesText(specifier, line) || matchesText({ ...specifier, text }, evenly(line));
}

/** One blank around each operator. */
function evenly(text: string): string {
  return text
    .replaceAll(/\s*(\|\||&&|[|;&])\s*/g, " $1 ")
    .replaceAll(/\s+/g, " ")
    .trim();
}

/** The rule as written, and as it was meant: without quotes, with single blanks, and by the name of its program alone. */
function spellingsOf(specifier: CommandSpecifier): readonly CommandSpecifier[] {
  const { text } = specifier;
  if (/^[a-z][\w.-]*(?: [^\s"'\\/]+)*$/.test(text)) return [specifier];
  const words = text
    .trim()
    .split(/\s+/)
    .map((word) => plainPath(/^(["'])(.*)\1$/.exec(word)?.[2] ?? word));
  const [program = "", ...rest] = words;
  const named = /[*]/.test(program) ? program : program.slice(program.lastIndexOf("/") + 1).toLowerCase();
  const plain = [named, ...rest].join(" ");
  return plain === text || named === "" ? [specifier] : [specifier, { ...specifier, text: plain }];
}

/** A command as given, with its program in small letters and plain paths, and with shortened options in full. */
function formsOf(text: string, { text: rule }: CommandSpecifier): readonly string[] {
  const [program = "", ...rest] = text.split(" ");
  const words = [program.toLowerCase(), ...rest.map(plainPath)];
  const full = rule.includes("--") ? words.map((word) => unabbreviated(word, rule)) : words;
  return [...new Set([text, words.join(" "), full.join(" ")])];
}

/** `./src/` is `src`. */
function plainPath(word: string): string {
  return word.startsWith("./") || word.endsWith("/")
    ? word.replace(/^(?:\.\/+)+(?=.)/, "").replace(/(.)\/+$/, "$1")
    : word;
}

/** Many programs take the beginning of a long option for all of it. */
function unabbreviated(word: string, rule: string): string {
  const [, name, value = ""] = /^(--[a-z][\w-]+)(=.*)?$/s.exec(word) ?? [];
  if (name === undefined) return word;
  const full = rule.split(/[\s*]+/).find((option) => option.startsWith(name) && option.length > name.length);
  return full === undefined ? word : `${full}${value}`;
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

/** `kubectl delete *` also speaks of `kubectl -n x delete y`, `npm install *` of `npm i`, `pip install *` of `pip3 -q install`. */
function matchesBehindOptions({ match, text }: CommandSpecifier, command: string): boolean {
  const isOpen = match === "prefix" || (match === "wildcard" && /^[^*]+\*$/.test(text));
  if (!isOpen) return false;
  const isCut = match === "wildcard" && !text.endsWith(" *");
  const wanted = text.replace(/ ?\*$/, "").split(" ");
  const given = command.split(" ");
  const [program = "", ...rest] = wanted;
  const isSame = isCut && rest.length === 0 ? given[0]?.startsWith(program) : isProgram(given[0], program);
  return isSame === true && continues({ wanted, given, isCut }, 1, 1);
}

/** A program of another version: `python3.11` is one of `python3` and of `python`. */
function isProgram(given: string | undefined, program: string): boolean {
  return given?.startsWith(program) === true && /^[\d.]*$/.test(given.slice(program.length));
}

interface Words {
  readonly wanted: readonly string[];
  readonly given: readonly string[];
  /** The last word may continue. */
  readonly isCut: boolean;
}

function continues(words: Words, at: number, from: number): boolean {
  const wanted = words.wanted[at];
  const given = words.given[from];
  if (wanted === undefined) return true;
  if (given === undefined) return false;
  const isLast = words.isCut && at === words.wanted.length - 1;
  if (isWord(words, given, wanted) || (isLast && given.startsWith(wanted)))
    if (continues(words, at + 1, from + 1)) return true;
  if (groups.get(words.wanted[0] ?? "") === given) return continues(words, at, from + 1);
  if (!/^[-+]./.test(given)) return false;
  // The word after an option may be its value.
  return (
    continues(words, at, from + 1) ||
    (!given.includes("=") && !/^-/.test(words.given[from + 1] ?? "-") && continues(words, at, from + 2))
  );
}

/** Words that may be left out before a command: `docker container run`. */
const groups: ReadonlyMap<string, string> = new Map([
  ["docker", "container"],
  ["podman", "container"],
]);

function isWord({ wanted: [program = ""] }: Words, given: string, wanted: string): boolean {
  if (given === wanted) return true;
  if (!/^p?npm$/.test(program)) return false;
  // npm takes the beginning of a command for all of it.
  return wanted === "install"
    ? /^(?:i|in|ins|inst|insta|instal|isn|isnt|isnta|isntal|isntall)$/.test(given) ||
        (program === "npm" && given === "add")
    : program === "npm" && given.length > 2 && wanted.startsWith(given);
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
