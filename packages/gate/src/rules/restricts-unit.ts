import { posix } from "node:path";
import type { RuleSpecifier } from "../permission-rule.ts";
import { matchesText } from "./grants-unit.ts";

type CommandSpecifier = Extract<RuleSpecifier, { type: "command" }>;

/** Whether a rule that restricts matches a command, in whatever way either of them is written. */
export function restrictsUnit(
  specifier: CommandSpecifier,
  texts: readonly string[],
  started: StartedIndex = new Map(),
  root = "",
): boolean {
  const wanted = wantedBy(specifier, root);
  const matches = (rule: CommandSpecifier, text: string): boolean =>
    isOfProgram(rule, text) &&
    mayBegin(rule, text) &&
    withWholeOptions(rule, text).some((whole) => matchesText(rule, whole) || matchesInAnyOrder(rule, whole));
  const covers = (rule: CommandSpecifier, command: string): boolean => {
    const { texts: spellings, mentioned } = spellingsOfCommand(command, root);
    return (
      spellings.some((text) => matches(rule, text)) || (mentioned !== undefined && mentions(rule, mentioned))
    );
  };
  return wanted.some(
    (rule) =>
      texts.some((text) => covers(rule, text)) ||
      someStart(startsOf(rule, started), {
        covers: (text) => covers(rule, text),
        mentions: (words) => mentions(rule, mentionedWords(words)),
      }),
  );
}

const maxStarts = 50;

/** Where there are too many commands to compare each, a rule matches them if all of its words are there. */
function someStart(
  starts: readonly Start[],
  {
    covers,
    mentions,
  }: Record<"covers", (text: string) => boolean> & Record<"mentions", (words: readonly string[]) => boolean>,
): boolean {
  if (starts.length <= maxStarts) return starts.some((start) => covers(textOf(start)));
  return [...new Set(starts.map(({ words }) => words))].some(mentions);
}

/** A word of a list that may be a command which is started there. */
interface Start {
  readonly words: readonly string[];
  readonly at: number;
}

/** Commands that others may start, by the name of their program. */
export type StartedIndex = ReadonlyMap<string, readonly Start[]>;

/** What programs may start, from every word of these lists on. */
export function indexStarted(lists: readonly (readonly string[])[]): StartedIndex {
  const index = new Map<string, Start[]>();
  for (const words of lists)
    for (const [at, word] of words.entries()) {
      const base = word.slice(word.lastIndexOf("/") + 1);
      const starts = index.get(base) ?? [];
      if (starts.length === 0) index.set(base, starts);
      starts.push({ words, at });
    }
  return index;
}

function textOf({ words, at }: Start): string {
  const [first = "", ...rest] = words.slice(at, at + farthestStarted);
  return [first.slice(first.lastIndexOf("/") + 1), ...rest].join(" ");
}

/** Most rules name their program, so that there is nothing to compare with other commands. */
function isOfProgram({ text: rule }: CommandSpecifier, text: string): boolean {
  const end = rule.search(/[\s*]/);
  return text.startsWith(end === -1 ? rule : rule.slice(0, end));
}

/** What a rule with a star has before its first option is there as it is, or the rule does not match the command. */
function mayBegin({ match, text: rule }: CommandSpecifier, text: string): boolean {
  if (match !== "wildcard") return true;
  const end = rule.search(/\s*(?:\*|--)/);
  return text.startsWith(end === -1 ? rule : rule.slice(0, end));
}

/** Whether a rule with an operator in it, such as `curl * | sh`, matches a whole line. */
export function restrictsLine(specifier: CommandSpecifier, line: string): boolean {
  if (!/[|;&]/.test(specifier.text)) return false;
  return matchesText({ ...specifier, text: plainLine(specifier.text) }, plainLine(line));
}

function plainLine(line: string): string {
  return line
    .replace(/[^\S\n]+/g, " ")
    .replace(/ ?(&&|\|\||\|&|[;|&\n]) ?/g, " $1 ")
    .replace(/\s+/g, " ")
    .trim();
}

const wantedRules = new WeakMap<
  CommandSpecifier,
  { readonly root: string; readonly wanted: readonly CommandSpecifier[] }
>();

/** A rule is compared with many commands. */
function wantedBy(specifier: CommandSpecifier, root: string): readonly CommandSpecifier[] {
  const known = wantedRules.get(specifier);
  if (known?.root === root) return known.wanted;
  // The rule as written, and as the shell would read it: without quotes, with one blank between words, and plain paths.
  const [program = "", ...rest] = unquoted(specifier.text).split(/\s+/);
  const words = rest.map((word) => plainPath(word, root));
  const base = program.slice(program.lastIndexOf("/") + 1) || program;
  const programs = new Set([plainPath(program, root), base].flatMap((name) => [name, foldProgram(name)]));
  const spelled = [...programs].map((name) => ({ ...specifier, text: [name, ...words].join(" ") }));
  const wanted = [specifier, ...spelled];
  wantedRules.set(specifier, { root, wanted });
  return wanted;
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
  /** There are more than were listed; the words that the command mentions. */
  readonly mentioned?: MentionedWords;
}

interface MentionedWords {
  /** Their last parts, where they are paths. */
  readonly names: ReadonlySet<string>;
  readonly longOptions: readonly string[];
}

function mentionedWords(words: readonly string[]): MentionedWords {
  return {
    names: new Set(words.map((word) => word.slice(word.lastIndexOf("/") + 1))),
    longOptions: [...new Set(words.filter((word) => /^--./.test(word)))],
  };
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
  const spellings: Spellings = {
    texts: [...found],
    ...(isIncomplete && { mentioned: mentionedWords(text.split(/\s+/)) }),
  };
  if (remembered.size >= maxRemembered) remembered.clear();
  // Long commands take up much, and hardly come again.
  if (key.length > 2_000 && remembered.size > 100) remembered.clear();
  remembered.set(key, spellings);
  return spellings;
}

/** Where a command can be read in too many ways, a rule matches it if all of its words are there. */
function mentions({ text }: CommandSpecifier, { names, longOptions }: MentionedWords): boolean {
  const [program = "", ...wanted] = text.split(/\s+/).map((word) => word.replace(/\*+$/, ""));
  const has = (word: string): boolean =>
    names.has(word) || (word.startsWith("--") && longOptions.some((option) => word.startsWith(option)));
  return program !== "" && names.has(program) && wanted.every((word) => word === "" || has(word));
}

const farthestStarted = 100;

/** Of what may be started, the commands whose program a rule names. */
function startsOf({ text }: CommandSpecifier, started: StartedIndex): readonly Start[] {
  const [program = ""] = text.split(/[\s*]/, 1);
  if (program === "" || started.size === 0) return [];
  if (!text.startsWith(`${program}*`)) return started.get(program) ?? [];
  return [...started].flatMap(([base, starts]) => (base.startsWith(program) ? starts : []));
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

/** `rm -rf *` also matches `rm -f -r x` and `rm x -rf`. */
function matchesInAnyOrder({ match, text }: CommandSpecifier, command: string): boolean {
  if (match === "wildcard" || !/ -/.test(text)) return false;
  const wanted = sortedWords(text);
  const given = sortedWords(command);
  if (![...wanted.options].every((option) => given.options.has(option))) return false;
  if (match === "exact" && wanted.options.size !== given.options.size) return false;
  const hasWords = wanted.words.every((word, at) => given.words[at] === word);
  return hasWords && (match === "prefix" || wanted.words.length === given.words.length);
}

interface SortedWords {
  readonly words: readonly string[];
  readonly options: ReadonlySet<string>;
}

const sorted = new Map<string, SortedWords>();

/** Each command is compared with many rules, and each rule with many commands. */
function sortedWords(text: string): SortedWords {
  const known = sorted.get(text) ?? sortWords(text);
  if (sorted.size >= maxRemembered || (text.length > 2_000 && sorted.size > 500)) sorted.clear();
  sorted.set(text, known);
  return known;
}

function sortWords(text: string): SortedWords {
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

/** Names of one subcommand, by program; the first is the usual one. */
const sameCommands: ReadonlyMap<string, readonly (readonly string[])[]> = new Map(
  Object.entries({
    npm:
      "install i in ins inst insta instal isnt isnta isntal isntall add; ci clean-install ic install-clean isntall-clean; " +
      "uninstall un unlink remove rm r; update up upgrade udpate; test t tst; run run-script rum urn; exec x; list ls ll la; " +
      "view info show v; config c; link ln; dist-tag dist-tags; owner author; login adduser add-user; version verison; " +
      "install-test it; install-ci-test cit; create init innit; publish; unpublish; deprecate; undeprecate; access; token; " +
      "logout; start; stop; restart; pack; audit; cache; set; get; dedupe ddp; prune; rebuild rb; org ogr; team; hook; star; " +
      "unstar; profile; pkg; edit; explore; explain why; outdated; doctor; repo; docs home; bugs issues; search s se find; " +
      "shrinkwrap; root; prefix; ping; whoami; fund; query; sbom; diff; completion; help; stars; trust; stage",
    pnpm: "install i; remove rm un uninstall; update up upgrade; list ls; run run-script; test t tst; link ln; exec; publish",
    yarn: "upgrade up; remove; global",
    bun: "install i; add a; remove rm; update; run; x",
    cargo: "build b; check c; doc d; run r; test t; remove rm",
    brew: "uninstall remove rm; list ls; upgrade; install",
    docker:
      "run; rmi image-rm image-remove; images image-ls image-list; ps container-ls container-list container-ps; rm container-rm container-remove",
    helm: "uninstall del delete un; list ls; upgrade",
    apt: "remove; purge; install",
  }).map(([program, groups]) => [program, groups.split("; ").map((group) => group.split(" "))]),
);
const abbreviating: ReadonlySet<string> = new Set(["npm"]);

/** Words before a subcommand that may be left out: `docker container run` is `docker run`. */
const leftOut: ReadonlyMap<string, RegExp> = new Map([
  ...["docker", "podman"].map((name): [string, RegExp] => [
    name,
    /^(?:container|image|system|builder|buildx)$/,
  ]),
  ["gcloud", /^(?:alpha|beta)$/],
  ["yarn", /^npm$/],
]);

/** Programs that people mean by one name. */
const families: readonly (readonly string[])[] = [
  ["python", "python3"],
  ["pip", "pip3"],
  ["apt", "apt-get"],
  ["node", "nodejs"],
];

const deepest = 3;
const farthest = 60;
const maxReadings = 64;
const maxSpellings = 512;
/** Of a long command there are fewer, so that they hold no more characters than this together. */
const maxCharacters = 200_000;

interface Readings {
  readonly readings: readonly (readonly string[])[];
  /** There are more than were listed. */
  readonly isIncomplete: boolean;
}

/**
 * Other ways to read a command for rules that restrict. Which of a program's options take a value is not known for all
 * programs, so a word after an option may be its value or the subcommand: `kubectl -n a delete x` is also read as
 * `kubectl delete x`. Names that mean the same subcommand or program are all given.
 */
function readingsOf([program = "", ...rest]: readonly string[]): Readings {
  const found = new Map<string, readonly string[]>();
  // A subcommand is among the first words; what follows is kept as it is.
  const far = rest.slice(farthest).join(" ");
  const near = far === "" ? rest : [...rest.slice(0, farthest), far];
  const length = near.reduce((sum, word) => sum + word.length + 1, program.length);
  const few = Math.max(2, Math.min(maxReadings, Math.floor(maxCharacters / length)));
  const plain = withoutOptions(near, deepest);
  for (const reading of plain.slice(0, few))
    for (const name of programNames(program))
      for (const words of sameReadings(name, reading))
        found.set([name, ...words].join(" "), [name, ...words]);
  const most = Math.max(few, Math.min(maxSpellings, Math.floor((4 * maxCharacters) / length)));
  const readings = [...found.values()].slice(0, most);
  return { readings, isIncomplete: plain.length > few || found.size > most };
}

/** The name without its version, and what else the program is called. */
function programNames(program: string): readonly string[] {
  const plain = program.replace(/^([A-Za-z]+[A-Za-z+-]*?)(?:-?\d[\d.]*)$/, "$1");
  const family = families.find((names) => names.includes(program) || names.includes(plain)) ?? [];
  return [...new Set([program, plain, ...family])];
}

/** The words with options left out before the first words that are none, in every way in which they can be read. */
function withoutOptions(words: readonly string[], depth: number): readonly (readonly string[])[] {
  if (depth === 0 || words.length === 0) return [words];
  const readings: (readonly string[])[] = [words];
  for (const at of placesOfCommand(words)) {
    const head = words[at] ?? "";
    for (const tail of withoutOptions(words.slice(at + 1), depth - 1)) readings.push([head, ...tail]);
    if (readings.length > maxReadings) break;
  }
  return readings;
}

/** Where the first word may be that is neither an option nor the value of one. */
function placesOfCommand(words: readonly string[]): readonly number[] {
  const places: number[] = [];
  for (const [at, word] of words.entries()) {
    if (/^[-+]./.test(word)) continue;
    places.push(at);
    const before = words[at - 1] ?? "";
    if (!before.startsWith("-") || before.includes("=")) break;
  }
  return places;
}

function sameReadings(program: string, words: readonly string[]): readonly (readonly string[])[] {
  const [first = "", ...rest] = words;
  const [second = "", ...others] = rest;
  const readings: (readonly string[])[] = [words];
  if (leftOut.get(program)?.test(first) === true) readings.push(rest);
  const groups = sameCommands.get(program === "podman" ? "docker" : program) ?? [];
  const names = groups.flatMap((group) => {
    const isMeant =
      group.includes(first) ||
      (abbreviating.has(program) && first.length > 1 && group.some((name) => name.startsWith(first)));
    return isMeant ? group : [];
  });
  const pairs = groups.filter((group) => group.includes(`${first}-${second}`)).flat();
  return [
    ...readings,
    ...names.map((name) => [...spelledOut(program, name), ...rest]),
    ...pairs.map((name) => [...spelledOut(program, name), ...others]),
    ...(program === "docker" || program === "podman"
      ? [
          ["container", ...words],
          ["image", ...words],
        ]
      : []),
  ];
}

/** `image-rm` is for `image rm`. */
function spelledOut(program: string, name: string): readonly string[] {
  return program === "docker" || program === "podman" ? name.split("-") : [name];
}
