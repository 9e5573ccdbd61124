import { judgeCommand } from "./shell-commands.ts";
import { hasHarmlessGitGlobals, withoutGitGlobals } from "./shell-git.ts";
import type { Judgement, UsedPath } from "./shell-judgement.ts";
import type { PathOperand, ShellUnit } from "./shell-types.ts";
import type { Word } from "./shell-word.ts";
import { launchers, managers, runners } from "./shell-wrapper-specs.ts";

export interface UnitInput {
  readonly words: readonly Word[];
  /** The directories it may run in. */
  readonly directories: readonly string[];
  /** Texts of the wrappers around it and of the command as written. */
  readonly outer: readonly string[];
  /** Why no rule but one for the whole tool may allow it. */
  readonly because?: string | undefined;
  /** Why only an exact rule may. */
  readonly exactOnly?: string | undefined;
  readonly wildcardHead?: string | undefined;
  readonly paths?: readonly UsedPath[];
}

/** Describes one simple command for the rules. */
export function createUnit(input: UnitInput): ShellUnit {
  const { words, directories } = input;
  const name = words[0];
  const here = directories.length === 1 && directories[0] === "";
  const judged = name?.literal === true ? judgeName(words, here) : undefined;
  const because = input.because ?? noGrantReason(name, here);
  const exactOnly = input.exactOnly ?? judged?.exactOnly;
  const wildcardHead = input.exactOnly === undefined ? judged?.wildcardHead : input.wildcardHead;
  const bareName = name?.literal === true && !name.text.includes("/");
  return {
    words: words
      .filter(({ source }) => source !== "")
      .map(({ text, literal, glob }) => ({ text, literal, glob })),
    written: words.map(({ source }) => source || furtherWords).join(" "),
    restrictTexts: restrictTexts(words, input.outer),
    readOnly: bareName && because === undefined && input.exactOnly === undefined && judged?.readOnly === true,
    operands: toOperands([...(input.paths ?? []), ...(judged?.paths ?? [])], directories),
    ...(because === undefined ? { grantText: grantText(words) } : { because }),
    ...(exactOnly !== undefined && { exactOnly }),
    ...(wildcardHead !== undefined && { wildcardHead }),
  };
}

/** Stands for words that `xargs` adds, so that an exact rule without them does not cover the command. */
const furtherWords = "…";
const neither = new Set(["", "-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"]);

/** Paths in each directory the command may run in; those that are no files are left out. */
export function toOperands(paths: readonly UsedPath[], directories: readonly string[]): PathOperand[] {
  return paths.flatMap(({ word, use, below }): PathOperand[] => {
    const rest = { use, ...(below === true && { below }) };
    const { path, pathKnown: literal } = word;
    if (word.source !== "" && (neither.has(path) || /^\/dev\/fd\/\d+$/.test(path))) return [];
    if (/^(?:\/|~(?:\/|$))/.test(path)) return [{ path, literal, directory: "", ...rest }];
    return directories.map((directory) => ({ path, literal, directory, ...rest }));
  });
}

function judgeName(words: readonly Word[], here: boolean): Judgement | undefined {
  const name = words[0]?.text ?? "";
  const base = baseName(name);
  if (launchers.has(base))
    return { readOnly: false, exactOnly: `${base} starts the program it is given`, paths: [] };
  if (base === name) return judgeCommand(words, here);
  const [first, ...rest] = words;
  return first === undefined ? undefined : judgeCommand([{ ...first, text: base }, ...rest], here);
}

function noGrantReason(name: Word | undefined, here: boolean): string | undefined {
  if (name === undefined || !name.literal) return "which program it is is only known when it runs";
  if (here || !name.text.includes("/") || name.text.startsWith("/")) return undefined;
  return "the program is named relative to a directory that was changed";
}

/** One text per command: words with blanks are quoted, so that no two commands have the same. */
function grantText(words: readonly Word[]): string {
  const plain = words[0]?.text === "git" && hasHarmlessGitGlobals(words) ? withoutGitGlobals(words) : words;
  return plain
    .map(({ text, literal, source }) => (literal ? quoted(text) : source || furtherWords))
    .join(" ");
}

function quoted(text: string): string {
  return text !== "" && !/\s/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function restrictTexts(words: readonly Word[], outer: readonly string[]): readonly string[] {
  const texts = new Set<string>();
  const sourced = words.filter(({ source }) => source !== "");
  const add = (list: readonly Word[]): void => {
    texts.add(list.map(({ text }) => text).join(" "));
  };
  add(sourced);
  texts.add(sourced.map(({ source }) => source).join(" "));
  const [name, ...rest] = sourced;
  if (name === undefined) return [...texts, ...outer];
  const base = { ...name, text: baseName(name.text) };
  if (base.text !== name.text) add([base, ...rest]);
  if (base.text === "git") addGit([base, ...rest], add);
  if (base.text === "rm")
    for (const flags of removalFlags(rest)) add([{ ...base, text: `rm ${flags}` }, ...operandsOf(rest)]);
  const started = startedFrom(base.text, rest);
  for (let at = started; at < Math.min(rest.length, started + 12); at += 1) add(rest.slice(at));
  for (const text of outer) texts.add(text);
  return [...texts];
}

/** Where the words begin that may be a command started by this one. */
function startedFrom(name: string, rest: readonly Word[]): number {
  if (launchers.has(name) || runners.has(name)) return 0;
  const verbs = managers.get(name);
  const verb = verbs === undefined ? -1 : rest.findIndex(({ text }) => verbs.includes(text));
  return verb === -1 ? rest.length : verb + 1;
}

function addGit(words: readonly Word[], add: (list: readonly Word[]) => void): void {
  const plain = withoutGitGlobals(words);
  add(plain);
  const [git, push, ...rest] = plain;
  if (git === undefined || push?.text !== "push") return;
  const forced = rest.some(({ text }) => /^(?:--force(?:$|[-=])|-[a-zA-Z]*f)/.test(text));
  const others = rest.filter(({ text }) => !text.startsWith("-"));
  if (forced || others.some(({ text }) => text.startsWith("+")))
    for (const flag of ["--force", "-f"]) add([git, push, { ...push, text: flag }, ...others]);
}

/** The usual spellings of the flags that were given in any spelling. */
function removalFlags(words: readonly Word[]): readonly string[] {
  const flags = words.filter(({ text }) => text.startsWith("-")).map(({ text }) => text);
  const recursive = flags.some((flag) => /^-[a-zA-Z]*[rR]|^--r/.test(flag));
  const forced = flags.some((flag) => /^-[a-zA-Z]*f|^--f/.test(flag));
  if (recursive && forced) return ["-rf", "-fr", "-r -f", "-f -r", "-r", "-f"];
  if (recursive) return ["-r", "-R"];
  return forced ? ["-f"] : [];
}

function operandsOf(words: readonly Word[]): readonly Word[] {
  return words.filter(({ text }) => !text.startsWith("-"));
}

export function baseName(text: string): string {
  return text.slice(text.lastIndexOf("/") + 1);
}
