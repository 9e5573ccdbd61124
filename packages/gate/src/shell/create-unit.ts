import type { Judgement, PathOperand, Place, ShellUnit, Surroundings, UsedPath, Word } from "./model.ts";
import { changeableWords } from "./programs/changeable-words.ts";
import { findScript, judgeCommand } from "./programs/judge-command.ts";
import { gitFolders, hasHarmlessGitGlobals, withoutGitGlobals } from "./programs/judge-git.ts";
import { used } from "./programs/judgement.ts";
import { quoteWord } from "./word.ts";
import { launchers, managers, runners } from "./wrapper-specs.ts";

export interface UnitInput {
  readonly words: readonly Word[];
  /** The directories it may run in. */
  readonly directories: readonly string[];
  /** Texts of the wrappers around it and of the command as written. */
  readonly outer: readonly string[];
  /** Why no rule but one for the whole tool may allow it. */
  readonly reason?: string | undefined;
  /** Why only an exact rule may. */
  readonly exactOnly?: string | undefined;
  readonly wildcardHead?: string | undefined;
  readonly paths?: readonly UsedPath[];
  /** It runs in the form in which it is written, whatever form was judged. */
  readonly asWritten?: true | undefined;
  /** What rules keep from being read is left out by programs that can. */
  readonly surroundings?: Omit<Surroundings, "home" | "matches">;
  /** Texts that the command gets on its input, which some programs run. */
  readonly input?: readonly string[];
}

export interface CreatedUnit {
  readonly unit: ShellUnit;
  /** What runs in place of the words. */
  readonly rendered?: readonly string[];
  /** What it leaves out, for the result. */
  readonly note?: string;
}

/** How the note about files that a search leaves out begins; it is dropped where there are none. */
export const leftOutNote = "Files that rules keep from being read were left out of the search:";

/** Describes one simple command for the rules. */
export function createUnit(input: UnitInput): CreatedUnit {
  const { words, surroundings: { exclusions, repository, filters, unreadable = [] } = {} } = input;
  const name = words[0];
  const here = input.directories.length === 1 && input.directories[0] === "";
  const entered = ownDirectories(words, input.directories);
  const isKnown = !entered.includes("unknown");
  const judged = name?.literal === true ? judgeName(words, { isKnown, repository, filters }) : undefined;
  const directories = enterFolders(judged?.folders ?? [], entered);
  const reason = input.reason ?? noGrantReason(name, here);
  const exactOnly = input.exactOnly ?? judged?.exactOnly;
  const wildcardHead = input.exactOnly === undefined ? judged?.wildcardHead : input.wildcardHead;
  const bareName = name?.literal === true && !name.text.includes("/");
  const isFormKept = input.asWritten !== true || judged?.rendered === undefined;
  const readOnly =
    bareName &&
    reason === undefined &&
    input.exactOnly === undefined &&
    judged?.readOnly === true &&
    isFormKept;
  const shownWords = words.filter(({ source, repeated }) => source !== "" && repeated !== true);
  const changeable = changeableWords(words, judged, findScript(words));
  const started = startedWords(words, judged, input.input ?? []);
  const namesFiles = judged === undefined ? ("any" as const) : judged.namesFiles;
  const limited =
    readOnly && judged?.showsTracked === true && exclusions !== undefined ? judged.limited : undefined;
  const searching =
    readOnly && input.asWritten !== true && unreadable.length > 0
      ? judged?.leaveOut?.(unreadable)
      : undefined;
  const unit: ShellUnit = {
    words: shownWords.map(({ text, literal, glob }) => ({ text, literal, glob })),
    written: writtenText(words),
    restrictTexts: restrictTexts(words, input.outer),
    readOnly,
    obeysDirectory: judged?.anywhere !== true,
    directories,
    operands: toOperands([...(input.paths ?? []), ...(judged?.paths ?? [])], directories).map((operand) =>
      searching === undefined || operand.below === undefined
        ? operand
        : { ...operand, leavesOut: unreadable },
    ),
    ...(reason === undefined ? { grantText: grantText(words) } : { reason }),
    exactOnly,
    wildcardHead,
    pinnedHead: judged?.pinnedHead,
    requiredHead: judged?.requiredHead,
    urls: judged?.urls,
    ...(judged?.showsTracked === true && limited === undefined && { showsTracked: true as const }),
    namesFiles,
    tree: judged?.tree,
    transport: judged?.transport,
    ...(started.length > 0 && { started }),
    ...(changeable.length > 0 && { mayChange: toOperands(used(changeable, "write"), directories) }),
    ...(removesUnknown(judged?.paths ?? [], directories) &&
      !movers.has(baseName(name?.text ?? "")) && { removesUnknown: true as const }),
  };
  if (limited !== undefined)
    return {
      unit,
      rendered: [...limited, ...(exclusions ?? []).map(quoteWord)],
      note: "Files that rules deny were left out of what git shows.",
    };
  if (searching !== undefined)
    return {
      unit,
      rendered: searching,
      note: `${leftOutNote} ${unreadable.map((each) => each.name).join(", ")}.`,
    };
  return readOnly && judged?.rendered !== undefined ? { unit, rendered: judged.rendered } : { unit };
}

/** Programs that take a file away from one place and leave it at another. */
const movers = new Set(["mv"]);

/** A file alone that is not known is no folder; everything else may be a home or a project. */
function removesUnknown(paths: readonly UsedPath[], directories: readonly string[]): boolean {
  return paths.some(({ word, use, below }) => {
    if (use !== "remove" || (word.isOne && (below === undefined || word.temporary === true))) return false;
    const isPlaced = /^(?:\/|~(?:\/|$))/.test(word.path) || !directories.includes("unknown");
    return !word.pathKnown || !isPlaced;
  });
}

/** Where `git -C` goes, from each directory it may start in. */
function ownDirectories(words: readonly Word[], directories: readonly string[]): readonly string[] {
  const isGit = words[0]?.literal === true && baseName(words[0].text) === "git";
  return isGit ? enterFolders(gitFolders(words), directories) : directories;
}

function enterFolders(folders: readonly Word[], directories: readonly string[]): readonly string[] {
  return folders.reduce(
    (from, { path, pathKnown, literal }) =>
      from.map((directory) => {
        if (!pathKnown || !literal) return "unknown";
        if (/^(?:\/|~(?:\/|$))/.test(path)) return path;
        return directory === "" || directory === "unknown" ? directory || path : `${directory}/${path}`;
      }),
    directories,
  );
}

/** Is for words that `xargs` adds, so that an exact rule without them does not cover the command. */
const furtherWords = "…";
const neither = new Set(["", "-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"]);

/** The words as they were written; what one of them was expanded to counts once. */
export function writtenText(words: readonly Word[]): string {
  return words
    .filter(({ continued }) => continued !== true)
    .map(({ source }) => source || furtherWords)
    .join(" ");
}

/** Paths in each directory the command may run in; those that are no files are left out. */
export function toOperands(paths: readonly UsedPath[], directories: readonly string[]): PathOperand[] {
  return paths.flatMap(({ word, use, below: reach }): PathOperand[] => {
    const own = word.printed === undefined ? "all" : "follow";
    const below = word.isBelow === true ? own : reach;
    const rest = {
      use,
      ...(word.printed === "split" && { isSplit: true as const }),
      names: word.names,
      below,
      ...(word.isSelection === true && { isSelection: true as const }),
    };
    const { path, pathKnown: literal } = word;
    if (word.source !== "" && (neither.has(path) || /^\/dev\/fd\/\d+$/.test(path))) return [];
    if (/^(?:\/|~(?:\/|$))/.test(path)) return [{ path, literal, directory: "", ...rest }];
    return directories.map((directory) => ({ path, literal, directory, ...rest }));
  });
}

function judgeName(words: readonly Word[], place: Place): Judgement | undefined {
  const name = words[0]?.text ?? "";
  const base = baseName(name);
  if (launchers.has(base))
    return {
      readOnly: false,
      exactOnly: `${base} starts the program it is given`,
      paths: [],
      namesFiles: "any",
    };
  if (base === name) return judgeCommand(words, place);
  const [first, ...rest] = words;
  return first === undefined ? undefined : judgeCommand([{ ...first, text: base }, ...rest], place);
}

function noGrantReason(name: Word | undefined, here: boolean): string | undefined {
  if (name === undefined || !name.literal) return "which program it is is only known when it runs";
  if (here || !name.text.includes("/") || name.text.startsWith("/")) return undefined;
  return "the program is named relative to a directory that was changed";
}

/** One text per command: words with spaces are quoted, so that no two commands have the same. */
function grantText(words: readonly Word[]): string {
  const plain = words[0]?.text === "git" && hasHarmlessGitGlobals(words) ? withoutGitGlobals(words) : words;
  return plain
    .filter(({ repeated }) => repeated !== true)
    .map(({ text, literal, source }) => (literal ? quoted(text) : source || furtherWords))
    .join(" ");
}

function quoted(text: string): string {
  return text !== "" && !/\s/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function restrictTexts(words: readonly Word[], outer: readonly string[]): readonly string[] {
  const texts = new Set<string>();
  const sourced = words.filter(({ source, repeated }) => source !== "" && repeated !== true);
  const add = (list: readonly Word[]): void => {
    texts.add(list.map(({ text }) => text).join(" "));
  };
  add(sourced);
  texts.add(writtenText(sourced));
  const [name, ...rest] = sourced;
  if (name === undefined) return [...texts, ...outer];
  const base = { ...name, text: baseName(name.text) };
  if (base.text !== name.text) add([base, ...rest]);
  if (base.text === "git") addGit([base, ...rest], add);
  if (base.text === "rm")
    for (const flags of removalFlags(rest)) add([{ ...base, text: `rm ${flags}` }, ...operandsOf(rest)]);
  for (const text of outer) texts.add(text);
  return [...texts];
}

/**
 * The words that may be a command which this one starts, from any of them on. A program that no table knows, or that is
 * called in a way that is not understood, may start whatever it is given; a text among its words may be shell text.
 */
function startedWords(
  words: readonly Word[],
  judged: Judgement | undefined,
  input: readonly string[],
): readonly (readonly string[])[] {
  const name = baseName(words[0]?.text ?? "");
  const rest = words.slice(1).map(({ text }) => text);
  const verbs = managers.get(name);
  const command = rest.findIndex((text, at) => !text.startsWith("-") && !/^-[^=]*$/.test(rest[at - 1] ?? ""));
  const isStarting =
    verbs !== undefined && rest.some((text, at) => verbs.includes(text) && (command === -1 || at <= command));
  const isLauncher =
    judged === undefined ||
    judged.exactOnly !== undefined ||
    (judged.namesFiles === "any" && verbs === undefined) ||
    launchers.has(name) ||
    runners.has(name) ||
    isStarting ||
    // Without a command of their own they start the program of that name.
    name === "yarn" ||
    name === "pnpm";
  if (!isLauncher) return [];
  const isFed = launchers.has(name) || runners.has(name) || /^(?:g?make|ed|ex|parallel)$/.test(name);
  const texts = [...rest, ...(isFed ? input : [])].map((text) =>
    text.split(/[\s;&|()`$'"{}<>=!,:]+/).filter((word) => word !== ""),
  );
  // `-Oless` is the option -O with its value.
  const glued = rest.flatMap((text) => (/^-[A-Za-z]\w/.test(text) ? [[text.slice(2)]] : []));
  return [rest, ...glued, ...texts.filter((parts) => parts.length > 1)].filter((parts) => parts.length > 0);
}

function addGit(words: readonly Word[], add: (list: readonly Word[]) => void): void {
  const plain = withoutGitGlobals(words);
  add(plain);
  const [git, push, ...rest] = plain;
  // `-n` of a commit is `--no-verify`.
  if (git !== undefined && push?.text === "commit" && rest.some(({ text }) => /^-[aeiopqsvz]*n/.test(text)))
    add([git, push, { ...push, text: "--no-verify" }, ...rest]);
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
